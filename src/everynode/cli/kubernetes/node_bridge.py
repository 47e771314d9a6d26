"""What kube-proxy would do for the pods of a node: the service "kubernetes" is the API server.

    python -m everynode.cli.kubernetes.node_bridge BRIDGE PORT     (as root, until it is killed)

Pods find the API server at the first address of the service range. That address is given to the
bridge they hang on, and who connects to it there is passed on to loopback. It is a program of its
own because a node lives longer than any one event loop of ours.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import subprocess
import sys
from contextlib import suppress
from functools import partial

from everynode.cli.kubernetes.components import SERVICES

API_SERVICE = str(next(ipaddress.ip_network(SERVICES).hosts()))
_PORT = 443
_CHUNK = 1 << 16


def make(bridge: str, gateway: str) -> None:
    """Make the bridge of a node's pods; raises CalledProcessError."""
    _ip("link", "add", bridge, "type", "bridge")
    _ip("address", "add", f"{gateway}/24", "dev", bridge)
    _ip("address", "add", f"{API_SERVICE}/32", "dev", bridge)
    _ip("link", "set", bridge, "up")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


async def serve(bridge: str, port: int) -> None:
    """Pass on whatever comes over the bridge to the API server's port on loopback."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Every node on the machine may have this address, each on its own bridge.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, bridge.encode())
    listening.bind((API_SERVICE, _PORT))
    server = await asyncio.start_server(partial(_pass_on, port), sock=listening)
    await server.serve_forever()


async def _pass_on(port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(OSError):
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
    finally:
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy one direction to its end, and tell the other side of the end."""
    try:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
    finally:
        writer.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
