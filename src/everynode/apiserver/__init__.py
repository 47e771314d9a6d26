"""A Kubernetes API server in one process: storage, the REST API, and HTTPS on loopback."""
