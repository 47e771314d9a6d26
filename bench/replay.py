"""What a rollout costs without a server: a stream replayed through watch, cache, ledger, decision.

    python -m bench.replay [--nodes 1000 --nodes 10000] [--updated 1000] [--profile FILE]

The controller runs as it is, in virtual time, on a transport that answers its writes and plays the
events that a server and kubelets would send: bytes in, bytes out, no HTTP. The CPU that the
transport itself takes is left out. CPU per pod must not grow with the cluster.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from bench import machine
from bench.rollout import daemonset, update
from bench.table import Row, print_table
from everynode.api.times import format_time
from everynode.components.kubelet.registration import STANDARD_MACHINE, node_name, node_object
from everynode.controller.run import GC_THRESHOLD, Controller, ControllerOptions
from everynode.kube.requests import Request, Response
from everynode.kube.resources import DAEMONSETS
from everynode.sim.engine.clock import SimClock
from everynode.sim.engine.loop import SimLoop, run

Object = dict[str, Any]

START = STOP = (0.2, 0.8)  # seconds, so that pods do not go in step
NAMESPACE = "bench"
encode = msgspec.json.encode
decode = msgspec.json.Decoder(Object).decode


class Stream:
    """One watch: lines as they come."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()

    async def readline(self) -> bytes:
        return await self.lines.get()

    async def read(self) -> bytes:
        return b""

    async def close(self) -> None:
        pass


class Player:
    """A transport that knows one DaemonSet, its pods and its revisions, and plays their events."""

    def __init__(self, clock: SimClock, nodes: int) -> None:
        self.spent = 0.0  # CPU seconds of our own
        self.requests: Counter[str] = Counter()
        self.ready = 0  # pods that are Ready now
        self._clock = clock
        self._version = 1000
        self._streams: dict[str, Stream] = {}
        self._names = [node_name(index, nodes) for index in range(nodes)]
        self._pods: dict[str, Object] = {}
        self.set = daemonset(DAEMONSETS)
        self.set["metadata"] |= {"namespace": NAMESPACE, "generation": 0, "uid": clock.uid()}

    # --- What happens ------------------------------------------------------------------------

    def apply(self, patch: Object) -> None:
        """Change the DaemonSet as its user does."""
        kind = "MODIFIED" if self.set["metadata"]["generation"] else "ADDED"
        _merge(self.set, patch)
        self.set["metadata"]["generation"] += 1
        self._tell(DAEMONSETS.path(), kind, self.set)

    def _tell(self, path: str, kind: str, body: Object) -> None:
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)
        stream = self._streams.get(path)
        if stream is not None:
            stream.lines.put_nowait(b'{"type":"%s","object":%s}' % (kind.encode(), encode(body)))

    def _later(self, seconds: float, work: Callable[[str], None], name: str) -> None:
        asyncio.get_running_loop().call_later(seconds, self._timed, work, name)

    def _timed(self, work: Callable[[str], None], name: str) -> None:
        began = time.thread_time()
        work(name)
        self.spent += time.thread_time() - began

    # --- The life of a pod -------------------------------------------------------------------

    def _bind(self, name: str) -> None:
        pod = self._pods[name]
        terms = pod["spec"]["affinity"]["nodeAffinity"]
        [term] = terms["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        pod["spec"]["nodeName"] = term["matchFields"][0]["values"][0]
        self._tell("/api/v1/pods", "MODIFIED", pod)
        self._later(self._clock.jitter(*START), self._start, name)

    def _start(self, name: str) -> None:
        pod, at = self._pods[name], format_time(self._clock.now())
        pod["status"] = {
            "phase": "Running",
            "startTime": at,
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": at}
                for kind in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
            "containerStatuses": [
                {
                    "name": container["name"],
                    "image": container["image"],
                    "imageID": "sha256:1",
                    "ready": True,
                    "restartCount": 0,
                    "state": {"running": {"startedAt": at}},
                }
                for container in pod["spec"]["containers"]
            ],
        }
        self.ready += 1
        self._tell("/api/v1/pods", "MODIFIED", pod)

    def _end(self, name: str) -> None:
        pod, at = self._pods[name], format_time(self._clock.now())
        for condition in pod["status"]["conditions"][2:]:
            condition |= {"status": "False", "lastTransitionTime": at}
        self._tell("/api/v1/pods", "MODIFIED", pod)
        self._later(0.01, self._vanish, name)

    def _vanish(self, name: str) -> None:
        self._tell("/api/v1/pods", "DELETED", self._pods.pop(name))

    # --- Transport ---------------------------------------------------------------------------

    async def send(self, request: Request) -> Response:
        await asyncio.sleep(0.002)
        began = time.thread_time()
        try:
            return self._answer(request)
        finally:
            self.spent += time.thread_time() - began

    def _answer(self, request: Request) -> Response:
        parts = request.path.split("/")
        self.requests[request.method] += request.method != "GET"
        match request.method, parts:
            case "POST", [*_, "pods"]:
                return self._create_pod(decode(request.body))
            case "DELETE", [*_, "pods", name]:
                return self._delete_pod(name)
            case "POST", _:
                body = decode(request.body)
                body["metadata"] |= {"uid": self._clock.uid()}
                collection = "/".join([*parts[:4], parts[-1]]) if parts[1] == "apis" else ""
                self._tell(collection, "ADDED", body)
                return Response(201, encode(body))
            case "PATCH", [*_, "status"]:
                _merge(self.set.setdefault("status", {}), decode(request.body)["status"])
                self._tell(DAEMONSETS.path(), "MODIFIED", self.set)
                return Response(200, encode(self.set))
            case "PATCH", _:
                return Response(200, b"{}")
        return Response(200, b'{"metadata":{"resourceVersion":"1"},"items":[]}')

    def _create_pod(self, pod: Object) -> Response:
        pod["metadata"] |= {
            "uid": self._clock.uid(),
            "namespace": NAMESPACE,
            "creationTimestamp": format_time(self._clock.now()),
        }
        pod["status"] = {"phase": "Pending"}
        name = pod["metadata"]["name"]
        self._pods[name] = pod
        self._tell("/api/v1/pods", "ADDED", pod)
        self._later(0.01, self._bind, name)
        return Response(201, encode(pod))

    def _delete_pod(self, name: str) -> Response:
        pod = self._pods[name]
        pod["metadata"]["deletionTimestamp"] = format_time(self._clock.now() + 10)
        self.ready -= 1
        self._tell("/api/v1/pods", "MODIFIED", pod)
        self._later(self._clock.jitter(*STOP), self._end, name)
        return Response(200, encode(pod))

    async def open(self, request: Request) -> Stream:
        began = time.thread_time()
        stream = Stream()
        pull_pods = ("labelSelector", "everynode.io/puller") in request.query
        if not pull_pods:
            self._streams[request.path] = stream
        if request.path.endswith("/nodes"):
            for index, name in enumerate(self._names):
                body = node_object(name, index, zone="a", now=0.0, machine=STANDARD_MACHINE)
                body["metadata"]["uid"] = name
                self._tell(request.path, "ADDED", body)
        if request.path.endswith("/pods") and not pull_pods:
            for pod in self._pods.values():
                line = b'{"type":"ADDED","object":%s}' % encode(pod)
                stream.lines.put_nowait(line)
        if request.path == DAEMONSETS.path() and self.set["metadata"]["generation"]:
            self._tell(request.path, "ADDED", self.set)
        stream.lines.put_nowait(
            b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d",'
            b'"annotations":{"k8s.io/initial-events-end":"true"}}}}' % self._version
        )
        self.spent += time.thread_time() - began
        return stream

    async def close(self) -> None:
        pass


def _merge(into: Object, patch: Object) -> None:
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


# --- Measuring -----------------------------------------------------------------------------------


class Stopwatch:
    """CPU of the controller alone."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._cpu, self._spent = time.process_time(), player.spent
        self._writes = player.requests.copy()

    def row(self, work: str, nodes: int, pods: int) -> Row:
        spent = self._player.spent - self._spent
        return Row(
            who="everynode",
            work=work,
            nodes=nodes,
            cpu_ms=(time.process_time() - self._cpu - spent) * 1000 / pods,
            writes=sum((self._player.requests - self._writes).values()) / pods,
        )


async def measure(loop: SimLoop, nodes: int, updated: int, profile: str) -> list[Row]:
    clock = SimClock(loop, 0)
    player = Player(clock, nodes)
    controller = Controller(player, clock, ControllerOptions(native=True))
    task = asyncio.ensure_future(controller.run())
    await asyncio.sleep(1)
    watch = Stopwatch(player)
    player.apply(update(0, "10"))
    while player.ready < nodes:
        await clock.sleep(1)
    rows = [watch.row("replayed creation", nodes, nodes)]
    gc.collect()
    for max_unavailable in ("10", "10%"):
        watch = Stopwatch(player)
        profiler = cProfile.Profile(time.thread_time) if profile else None
        if profiler:
            profiler.enable()
        before = player.requests["DELETE"]
        player.apply(update(1 if max_unavailable == "10" else 2, max_unavailable))
        while player.requests["DELETE"] - before < updated:
            await clock.sleep(0.1)
        done = player.requests["DELETE"] - before
        if profiler:
            profiler.disable()
            profiler.dump_stats(profile)
        rows.append(watch.row(f"replayed update, maxUnavailable {max_unavailable}", nodes, done))
    task.cancel()
    await asyncio.wait([task])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, action="append", help="1000 and 10000 by default")
    parser.add_argument("--updated", type=int, help="pods to update; nearly all by default")
    parser.add_argument("--profile", default="", metavar="FILE", help="for python -m pstats")
    typed = parser.parse_args()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLD)  # as in `everynode run`
    rows: list[Row] = []
    for nodes in typed.nodes or (1000, 10000):
        loop = SimLoop()
        updated = min(nodes * 9 // 10, typed.updated or nodes)
        rows += run(measure(loop, nodes, updated, typed.profile), loop=loop)
    print_table(rows)
    machine.append("replay", rows)


if __name__ == "__main__":
    main()
