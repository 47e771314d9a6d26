"""The HTTP transport: connections, TLS, proxies and HTTP/1.1."""
