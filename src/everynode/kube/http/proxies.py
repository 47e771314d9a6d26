"""Proxies: which one the environment ($HTTPS_PROXY, $NO_PROXY) sets for a server."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def proxy_for(server: str, environ: Mapping[str, str]) -> str:
    """Return the address of the proxy for a server, empty where it is reached directly.

    The rules are those of Go programs, so that we use the same proxy as kubectl: loopback is never
    proxied, $NO_PROXY may name hosts, domains, addresses and networks.
    """
    parts = urlsplit(server)
    proxy = _variable(f"{parts.scheme}_proxy", environ)
    host = parts.hostname or ""
    if not proxy or _is_loopback(host) or _is_excluded(host, parts.port, environ):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _variable(name: str, environ: Mapping[str, str]) -> str:
    return environ.get(name.upper()) or environ.get(name.lower()) or ""


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _is_excluded(host: str, port: int | None, environ: Mapping[str, str]) -> bool:
    entries = [part.strip().lower() for part in _variable("no_proxy", environ).split(",")]
    return any(_matches(entry, host.lower(), port) for entry in entries if entry)


def _matches(entry: str, host: str, port: int | None) -> bool:
    if entry == "*":
        return True
    address = _address(host)
    if address is not None and "/" in entry:
        try:
            return address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, number = entry.rpartition(":")
    if colon and number.isdecimal() and ":" not in name:
        if port is None or int(number) != port:
            return False
        entry = name
    if entry.startswith("."):
        return host.endswith(entry)
    return host == entry or (address is None and host.endswith(f".{entry}"))


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
