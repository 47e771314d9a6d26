"""Network of a real node: a bridge, and a TCP proxy for the service "kubernetes".

    python -m everynode.localkube.node_network BRIDGE PORT     (as root, until it is killed)

It replaces kube-proxy. Pods find the API server at the first address of the service range. That
address is assigned to the pods' bridge, and connections to it are forwarded to loopback. It is a
separate program because a node outlives the event loop that starts it.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import subprocess
import sys
from contextlib import suppress
from functools import partial

from everynode.localkube.control_plane_config import SERVICE_CIDR

API_SERVICE = str(next(ipaddress.ip_network(SERVICE_CIDR).hosts()))
_PORT = 443
_CHUNK = 1 << 16


def make_bridge(bridge: str, gateway: str) -> None:
    """Create the bridge of a node's pods; raises CalledProcessError."""
    _ip("link", "add", bridge, "type", "bridge")
    _ip("address", "add", f"{gateway}/24", "dev", bridge)
    _ip("address", "add", f"{API_SERVICE}/32", "dev", bridge)
    _ip("link", "set", bridge, "up")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


async def serve(bridge: str, port: int) -> None:
    """Forward connections from the bridge to the API server's port on loopback."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Several nodes on one machine have this address, each on its own bridge.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, bridge.encode())
    listening.bind((API_SERVICE, _PORT))
    server = await asyncio.start_server(partial(_proxy, port), sock=listening)
    await server.serve_forever()


async def _proxy(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(_copy_stream(reader, far_writer), _copy_stream(far_reader, writer))
    finally:
        writer.close()


async def _copy_stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction until its end, then close the other side."""
    try:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    finally:
        writer.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
