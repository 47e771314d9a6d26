"""How fast and how large the embedded API server is.

    python -m bench.apiserver [NAME ...]

Without names everything is measured: create, https, data, watch, wire, memory, list.
Every measurement runs in a process of its own; over HTTPS server and client are two processes.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import uvloop

from bench.process_usage import own_resident_bytes
from everynode.apiserver.server import Server
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.clock import SystemClock
from everynode.kube.requests import STRATEGIC_PATCH, Request

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
Row = tuple[str, str, str]


def pod(name: str, node: str) -> bytes:
    """A pod as a DaemonSet controller makes it."""
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {
                    "app": "agent",
                    "controller-revision-hash": "6d4b75cb6d",
                    "pod-template-generation": "1",
                },
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "DaemonSet",
                        "name": "agent",
                        "uid": "1d3ec7b8-4a63-4c9a-9f80-5d1d8e0b2c1f",
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ],
            },
            "spec": {
                "containers": [
                    {
                        "name": "agent",
                        "image": "registry.example/agent:1.2.3",
                        "args": ["--config=/etc/agent/config.yaml", "--log-level=info"],
                        "env": [
                            {
                                "name": "NODE_NAME",
                                "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}},
                            }
                        ],
                        "ports": [{"containerPort": 9100, "name": "metrics"}],
                        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                        "volumeMounts": [{"name": "config", "mountPath": "/etc/agent"}],
                    }
                ],
                "volumes": [{"name": "config", "configMap": {"name": "agent"}}],
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {
                                    "matchFields": [
                                        {
                                            "key": "metadata.name",
                                            "operator": "In",
                                            "values": [node],
                                        }
                                    ]
                                }
                            ]
                        }
                    }
                },
                "tolerations": [
                    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
                    for key, effect in (
                        ("not-ready", "NoExecute"),
                        ("unreachable", "NoExecute"),
                        ("disk-pressure", "NoSchedule"),
                        ("memory-pressure", "NoSchedule"),
                        ("pid-pressure", "NoSchedule"),
                        ("unschedulable", "NoSchedule"),
                    )
                ],
            },
        }
    )


def node(name: str) -> bytes:
    """A node as a kubelet registers it."""
    conditions = [
        {
            "type": kind,
            "status": "True" if kind == "Ready" else "False",
            "reason": f"Kubelet{kind}",
            "message": "kubelet is posting its status",
            "lastHeartbeatTime": "2026-01-01T00:00:00Z",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    "kubernetes.io/hostname": name,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                    "topology.kubernetes.io/zone": "zone-1",
                },
            },
            "status": {
                "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
                "conditions": conditions,
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "images": [
                    {"names": [f"registry.example/image-{n}:1"], "sizeBytes": 10_000_000}
                    for n in range(10)
                ],
            },
        }
    )


async def create_in_process() -> list[Row]:
    """Pods per second without sockets."""
    transport = LocalTransport(Api(clock=SystemClock()))
    return [("pod creates in process", f"{await _create(transport, 10_000):,.0f}/s", ">= 5,000/s")]


async def create_with_data() -> list[Row]:
    """Pods per second when every one must be on disk."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(clock=SystemClock(), data=Path(folder))
        rate = await _create(server.transport, 5_000, at_once=100)
        await server.stop()
    return [("pod creates in process, on disk", f"{rate:,.0f}/s", "")]


async def _create(transport: LocalTransport, number: int, *, at_once: int = 1) -> float:
    requests = [
        Request("POST", PODS, body=pod(f"agent-{n:05d}", f"node-{n:05d}")) for n in range(number)
    ]
    await transport.send(Request("POST", PODS, body=pod("warm-up", "node")))
    queue = iter(requests)

    async def worker() -> None:
        for request in queue:
            response = await transport.send(request)
            assert response.status == 201, response.body

    began = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(at_once)))
    return number / (time.perf_counter() - began)


async def fan_out() -> list[Row]:
    """Events to three watchers in process."""
    transport = LocalTransport(Api(clock=SystemClock()))
    await transport.send(Request("POST", PODS, body=pod("p", "n")))
    streams = [await transport.open(Request("GET", PODS, (("watch", "true"),))) for _ in range(3)]
    total = 20_000

    async def write() -> None:
        for number in range(total):
            body = b'{"metadata":{"labels":{"n":"%d"}}}' % number
            path = f"{PODS}/p"
            kind = "application/merge-patch+json"
            await transport.send(Request("PATCH", path, body=body, content_type=kind))

    async def read(stream: Any) -> None:
        for _ in range(total + 1):
            assert await stream.readline()

    began = time.perf_counter()
    await asyncio.gather(write(), *(read(stream) for stream in streams))
    spent = time.perf_counter() - began
    return [("20,000 patches seen by 3 watchers", f"{spent:.1f} s", "")]


async def footprint() -> list[Row]:
    """Memory of a cluster of 5,000 nodes with a pod each, and how long it takes to make."""
    api = Api(clock=SystemClock())
    transport = LocalTransport(api)
    before = own_resident_bytes()
    began = time.perf_counter()
    for n in range(5_000):
        response = await transport.send(Request("POST", NODES, body=node(f"node-{n:05d}")))
        assert response.status == 201, response.body
    nodes = time.perf_counter() - began
    await _create(transport, 5_000)
    for n in range(5_000):
        path = f"{PODS}/agent-{n:05d}"
        target = {"metadata": {"name": f"agent-{n:05d}"}, "target": {"name": f"node-{n:05d}"}}
        await transport.send(Request("POST", f"{path}/binding", body=msgspec.json.encode(target)))
        status = {"status": {"phase": "Running", "conditions": _ready()}}
        body = msgspec.json.encode(status)
        await transport.send(
            Request("PATCH", f"{path}/status", body=body, content_type=STRATEGIC_PATCH)
        )
    history = api.store.history.size / 1e6
    now = own_resident_bytes() / 1e6
    return [
        ("5,000 nodes created", f"{nodes:.1f} s", ""),
        (
            "memory with 5,000 nodes and 5,000 running pods",
            f"{now:.0f} MB (empty {before / 1e6:.0f} MB, history {history:.0f} MB)",
            "<= 400 MB",
        ),
    ]


def _ready() -> list[dict[str, str]]:
    return [
        {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]


async def listing() -> list[Row]:
    """A list of 5,000 pods, whole and as the pods of one node."""
    transport = LocalTransport(Api(clock=SystemClock()))
    await _create(transport, 5_000)
    began = time.perf_counter()
    body = (await transport.send(Request("GET", PODS))).body
    whole = time.perf_counter() - began
    began = time.perf_counter()
    query = (("fieldSelector", "spec.nodeName=nowhere"),)
    await transport.send(Request("GET", PODS, query))
    filtered = time.perf_counter() - began
    return [
        ("list of 5,000 pods", f"{whole * 1e3:.0f} ms, {len(body) / 1e6:.0f} MB", ""),
        ("pods of one node out of 5,000", f"{filtered * 1e3:.1f} ms", ""),
    ]


SERVE = """
import asyncio, json, sys, uvloop
from everynode.clock import SystemClock
from everynode.apiserver.server import Server

async def main():
    server = Server(clock=SystemClock())
    await server.start()
    print(json.dumps([server.url, server.identity.token, server.identity.authority]), flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await server.stop()

uvloop.run(main())
"""


async def _over_https(
    measure: Callable[[aiohttp.ClientSession, str], Awaitable[list[Row]]],
) -> list[Row]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVE, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    url, token, authority = json.loads(await process.stdout.readline())
    trust = ssl.create_default_context(cadata=authority)
    connector = aiohttp.TCPConnector(ssl=trust, limit=60)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    async with aiohttp.ClientSession(
        connector=connector, headers=headers, read_bufsize=1 << 21
    ) as session:
        rows = await measure(session, url)
    process.stdin.close()
    await process.wait()
    return rows


async def create_over_https() -> list[Row]:
    """Pods per second over HTTPS, fifty at a time."""

    async def measure(session: aiohttp.ClientSession, url: str) -> list[Row]:
        bodies = iter([pod(f"agent-{n:05d}", f"node-{n:05d}") for n in range(5_000)])

        async def worker() -> None:
            for body in bodies:
                async with session.post(f"{url}{PODS}", data=body) as response:
                    await response.read()
                    assert response.status == 201

        began = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(50)))
        rate = 5_000 / (time.perf_counter() - began)
        return [("pod creates over HTTPS", f"{rate:,.0f}/s", ">= 500/s")]

    return await _over_https(measure)


async def fan_out_over_https() -> list[Row]:
    """Events to three watchers over HTTPS."""
    total = 20_000

    async def measure(session: aiohttp.ClientSession, url: str) -> list[Row]:
        names = iter(range(total))

        async def write() -> None:
            for n in names:
                body = pod(f"agent-{n:05d}", f"node-{n:05d}")
                async with session.post(f"{url}{PODS}", data=body) as response:
                    await response.read()

        async def read() -> None:
            timeout = aiohttp.ClientTimeout(total=None)
            async with session.get(f"{url}{PODS}?watch=true", timeout=timeout) as stream:
                for _ in range(total):
                    assert await stream.content.readline()

        began = time.perf_counter()
        await asyncio.gather(*(read() for _ in range(3)), *(write() for _ in range(20)))
        spent = time.perf_counter() - began
        return [("20,000 creates seen by 3 watchers over HTTPS", f"{spent:.1f} s", "")]

    return await _over_https(measure)


MEASUREMENTS: dict[str, Callable[[], Awaitable[list[Row]]]] = {
    "create": create_in_process,
    "https": create_over_https,
    "data": create_with_data,
    "watch": fan_out,
    "wire": fan_out_over_https,
    "memory": footprint,
    "list": listing,
}


def main() -> None:
    """Measure what is named, or everything, each in a process of its own."""
    names = sys.argv[1:] or list(MEASUREMENTS)
    unknown = [name for name in names if name not in MEASUREMENTS]
    if unknown:
        sys.exit(f"unknown: {', '.join(unknown)}; known are {', '.join(MEASUREMENTS)}")
    if len(names) == 1:
        for what, found, wanted in uvloop.run(_rows(names[0])):
            print(f"| {what:46s} | {found:44s} | {wanted:10s} |")
        return
    print(
        f"| {'what':46s} | {'measured':44s} | {'wanted':10s} |\n|{'-' * 48}|{'-' * 46}|{'-' * 12}|"
    )
    for name in names:
        subprocess.run([sys.executable, "-m", "bench.apiserver", name], check=True)


async def _rows(name: str) -> list[Row]:
    return await MEASUREMENTS[name]()


if __name__ == "__main__":
    main()
