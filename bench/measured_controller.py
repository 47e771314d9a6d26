"""Controllers that are measured, each a process: Everynode, and kube-controller-manager twice."""

from __future__ import annotations

import socket
import ssl
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench.process_usage import ProcessUsage, read_process, samples
from bench.rollout_cluster import GRACE, RolloutCluster, clock
from everynode.localkube import binaries
from everynode.localkube.processes import ChildProcess, stop

EVERYNODE = "everynode"
_PEER = "kube-controller-manager"
_WRITES = ("POST", "PUT", "PATCH", "DELETE")
_QUIET = 3.0  # seconds without work after which a contender is at rest


@dataclass(frozen=True, slots=True)
class MeasuredController:
    """A running controller."""

    name: str
    process: ChildProcess
    metrics_url: str
    token: str  # for the metrics; empty if they need no token

    def read(self) -> ProcessUsage:
        assert self.process.pid is not None
        self.process.require_running()
        return read_process(self.process.pid)

    async def writes(self) -> Counter[str]:
        """Its writes so far, by verb and, where it reports that, by resource."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE  # its own certificate
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(self.metrics_url, ssl=tls) as response,
        ):
            response.raise_for_status()
            text = await response.text()
        written: Counter[str] = Counter()
        for labels, value in samples(text, "everynode_api_writes_total"):
            written[f"{labels['verb']} {labels['resource']}"] += int(value)
        for labels, value in samples(text, "rest_client_requests_total"):
            if labels["method"] in _WRITES:
                written[labels["method"].lower()] += int(value)
        return written

    async def until_at_rest(self) -> None:
        """Wait until it has nothing to do."""
        while True:
            before = self.read().cpu
            await clock.sleep(_QUIET)
            if self.read().cpu - before <= 0.02 * _QUIET:
                return

    async def stop(self) -> None:
        await stop([self.process], GRACE)


def minor(release: str) -> str:
    """The release as people call it: 1.37 for v1.37.1."""
    return release.removeprefix("v").rpartition(".")[0]


# Where kube-controller-manager of each release is; they raise BinariesMissingError.
PEERS: dict[str, Callable[[], Path]] = {
    minor(binaries.RELEASE): lambda: binaries.find() / _PEER,
    minor(binaries.PREVIOUS_RELEASE): lambda: binaries.find_previous(_PEER),
}


def start_controller(who: str, place: RolloutCluster, profile: str = "") -> MeasuredController:
    """Start Everynode, or kube-controller-manager of that release."""
    return _everynode(place, profile) if who == EVERYNODE else _peer(who, place)


def _everynode(place: RolloutCluster, profile: str) -> MeasuredController:
    """Our controller, as people run it."""
    port = free_port()
    program = ["bench.profiled", profile] if profile else ["everynode"]
    argv = [
        sys.executable,
        "-m",
        *program,
        "run",
        "--native",
        f"--kubeconfig={place.kubeconfig}",
        "--no-leader-elect",
        f"--metrics-address=127.0.0.1:{port}",
        "--health-address=0",
    ]
    return _start(EVERYNODE, argv, place, f"http://127.0.0.1:{port}/metrics")


def _peer(release: str, place: RolloutCluster) -> MeasuredController:
    """kube-controller-manager with nothing but its DaemonSet controller, its client unlimited."""
    assert place.plane is not None
    port = free_port()
    argv = [
        str(PEERS[release]()),
        "--controllers=daemonset-controller",
        f"--kubeconfig={place.kubeconfig}",
        f"--authentication-kubeconfig={place.kubeconfig}",
        f"--authorization-kubeconfig={place.kubeconfig}",
        "--leader-elect=false",
        "--kube-api-qps=5000",
        "--kube-api-burst=10000",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={place.folder}/manager",
    ]
    url = f"https://127.0.0.1:{port}/metrics"
    return _start(f"{_PEER} {release}", argv, place, url, token=place.plane.token)


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        number: int = held.getsockname()[1]
        return number


def _start(
    name: str, argv: list[str], place: RolloutCluster, url: str, *, token: str = ""
) -> MeasuredController:
    process = ChildProcess(argv, Path.cwd(), place.folder / f"{name}.log")
    process.start()
    return MeasuredController(name, process, url, token)
