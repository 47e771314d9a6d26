"""What talking to an API server costs: CPU per request, and per event of a watch.

    python -m bench.client [--loop uvloop|asyncio] [--requests 5000] [--events 20000]

A server in a process of its own answers over TLS on loopback: each POST with a pod of 6 KB, each
watch with pods of 8 KB as fast as they are read. Only the client's CPU is counted; the events go
through the watcher, the decoder and the indexed cache, as in the controller.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import ipaddress
import json
import multiprocessing
import resource
import ssl
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import uvloop
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from everynode.api.objects import Pod
from everynode.clock import SystemClock
from everynode.kube import verbs
from everynode.kube.auth.credentials import Identity, StaticCredentials, bearer_header
from everynode.kube.auth.kubeconfig import ClusterConfig
from everynode.kube.client import Client
from everynode.kube.http.transport import HttpTransport
from everynode.kube.resources import PODS
from everynode.kube.verbs import ListOptions
from everynode.kube.watch.cache import Cache
from everynode.kube.watch.decode import Decoder
from everynode.kube.watch.watcher import Watcher

PODS_THERE = 5000
AT_ONCE = 50


def pod(number: int, version: int, *, size: int) -> dict[str, Any]:
    """A running pod with the usual ballast: environment, mounts, managed fields."""
    times = "2026-01-01T00:00:00Z"
    conditions = ("PodScheduled", "Initialized", "ContainersReady", "Ready")
    body: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"agent-{number:05d}",
            "namespace": "monitoring",
            "uid": f"00000000-0000-4000-8000-{number:012d}",
            "resourceVersion": str(version),
            "creationTimestamp": times,
            "labels": {"app": "agent", "controller-revision-hash": "5d9c7b8f6"},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "DaemonSet",
                    "name": "agent",
                    "uid": "00000000-0000-4000-9000-000000000000",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [],
        },
        "spec": {
            "nodeName": f"node-{number:05d}",
            "containers": [{"name": "agent", "image": "agent:1", "resources": {}, "env": []}],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": times} for kind in conditions
            ],
            "containerStatuses": [
                {
                    "name": "agent",
                    "image": "agent:1",
                    "imageID": "sha256:0",
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": times}},
                }
            ],
        },
    }
    missing = size - len(json.dumps(body))
    fields = [{"name": f"VARIABLE_{index}", "value": "x" * 40} for index in range(missing // 160)]
    body["spec"]["containers"][0]["env"] = fields
    missing = size - len(json.dumps(body))
    entries = [{"manager": "kubelet", "fieldsV1": {"f:status": {"f:x": {}}}}] * (missing // 70)
    body["metadata"]["managedFields"] = entries
    return body


PLACES = ("77777", "88888")  # of the pod's number and its version, in the template
TEMPLATE = json.dumps(pod(int(PLACES[0]), int(PLACES[1]), size=8000), separators=(",", ":"))
END_OF_INITIAL_EVENTS = (
    b'{"type":"BOOKMARK","object":{"kind":"Pod","metadata":{"resourceVersion":"99999",'
    b'"annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
)


def event(kind: str, number: int, version: int) -> bytes:
    body = TEMPLATE.replace(PLACES[0], f"{number:05d}").replace(PLACES[1], str(version))
    return f'{{"type":"{kind}","object":{body}}}\n'.encode()


# --- The server ----------------------------------------------------------------------------------


def make_certificate(folder: Path) -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench")])
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    (folder / "certificate").write_bytes(certificate)
    (folder / "key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate


async def serve(pipe: Connection, folder: Path, events: int) -> None:
    answer = json.dumps(pod(1, 1, size=6000), separators=(",", ":")).encode()

    async def create(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=answer, content_type="application/json", status=201)

    async def watch(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        together = int(request.query["fieldSelector"].rpartition("=")[2])
        initial = [event("ADDED", number, 100 + number) for number in range(PODS_THERE)]
        await response.write(b"".join(initial) + END_OF_INITIAL_EVENTS)
        for start in range(0, events, together):
            numbers = range(start, min(start + together, events))
            lines = [event("MODIFIED", n % PODS_THERE, 100_000 + n) for n in numbers]
            await response.write(b"".join(lines))
        await asyncio.Event().wait()
        return response

    app = web.Application()
    app.router.add_post("/{tail:.*}", create)
    app.router.add_get("/{tail:.*}", watch)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate", folder / "key")
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    pipe.send(runner.addresses[0][1])
    await asyncio.Event().wait()


def run_server(pipe: Connection, folder: Path, events: int) -> None:
    uvloop.run(serve(pipe, folder, events))


# --- The client ----------------------------------------------------------------------------------


async def measure_requests(transport: HttpTransport, count: int) -> float:
    client = Client(transport, SystemClock(), writes_at_once=AT_ONCE)
    request = verbs.create(PODS, pod(1, 1, size=3000), namespace="monitoring")

    async def work(share: int) -> None:
        for _ in range(share):
            await client.write(request, len)

    await asyncio.gather(*(work(2) for _ in range(AT_ONCE)))
    began = time.process_time()
    await asyncio.gather(*(work(count // AT_ONCE) for _ in range(AT_ONCE)))
    return (time.process_time() - began) / count


async def measure_watch(
    transport: HttpTransport, events: int, *, together: int
) -> tuple[float, float]:
    cache: Cache[Pod] = Cache(
        indexes={"node": lambda p: p.spec.node_name, "owner": lambda p: p.metadata.labels["app"]}
    )
    seen, done = 0, asyncio.Event()

    def count(_: Pod | None, __: Pod | None) -> None:
        nonlocal seen
        seen += 1
        if seen == PODS_THERE + events:
            done.set()

    cache.subscribe(count)
    watcher = Watcher(
        transport,
        SystemClock(),
        resource=PODS,
        decode=Decoder(Pod).one,
        consumer=cache,
        options=ListOptions(fields=f"together={together}"),  # for our own server's eyes
    )
    began = time.process_time()
    running = asyncio.ensure_future(watcher.run())
    await watcher.settled()
    listed = time.process_time()
    await done.wait()
    ended = time.process_time()
    running.cancel()
    await asyncio.wait([running])
    return (listed - began) / PODS_THERE, (ended - listed) / events


async def measure(port: int, ca: bytes, options: argparse.Namespace) -> None:
    credentials = StaticCredentials(Identity((bearer_header("x"),)))
    access = ClusterConfig(f"https://127.0.0.1:{port}", credentials, ca=ca)
    transport = HttpTransport(access, SystemClock())
    request = await measure_requests(transport, options.requests)
    initial, alone = await measure_watch(transport, options.events, together=1)
    _, bulk = await measure_watch(transport, options.events, together=16)
    await transport.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"loop {options.loop}, TLS on loopback, {AT_ONCE} at once")
    print(f"  write, answer of 6 KB        {request * 1e6:6.0f} µs CPU each")
    print(f"  initial event of 8 KB        {initial * 1e6:6.0f} µs CPU each")
    print(f"  watch event of 8 KB, alone   {alone * 1e6:6.0f} µs CPU each")
    print(f"  watch event, 16 together     {bulk * 1e6:6.0f} µs CPU each")
    print(f"  most resident memory         {memory:6.0f} MB with {PODS_THERE} pods cached")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--events", type=int, default=20000)
    options = parser.parse_args()
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ca = make_certificate(folder)
        server = multiprocessing.get_context("spawn").Process(
            target=run_server, args=(theirs, folder, options.events), daemon=True
        )
        server.start()
        try:
            run = uvloop.run if options.loop == "uvloop" else asyncio.run
            run(measure(ours.recv(), ca, options))
        finally:
            server.kill()
            server.join()


if __name__ == "__main__":
    main()
