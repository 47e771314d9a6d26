"""The demo: a canary, a silent node, a bad version and the way back on an embedded cluster."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any, Final, TextIO

from everynode.api.daemonset import DaemonSet
from everynode.api.decode import require_identity
from everynode.api.objects import Node, Pod
from everynode.api.versions import decode_daemonset
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.cli.demo import BUDGET, CANARIES
from everynode.cli.serving.simulated_nodes import annotate_node
from everynode.cli.terminal.node_grid import NodeGrid, NodeMark
from everynode.clock import Clock, SystemClock
from everynode.components.annotations import STOPPED
from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.run import ComponentOptions, Components
from everynode.controller.run import Controller, ControllerOptions
from everynode.decide.fleet.conditions import PROGRESSING
from everynode.decide.node.availability import is_ready
from everynode.errors import UserError
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.resources import ADVANCED, NODES, PODS
from everynode.kube.transport import Transport
from everynode.kube.watch.cache import Cache
from everynode.kube.watch.decode import Decoder
from everynode.kube.watch.watcher import Watcher

_NO_CHANGE_TIMEOUT: Final = 60.0  # seconds; a change normally comes within one
_OLD, _NEW, _BAD = "agent:v1", "agent:v2", "agent:v3-crash-loop"  # the last fails by its name
# Simulated seconds: how long a picture stays, how long the bad version stays, and how
# long a kubelet is silent before its node is reported as such (40 on a real cluster).
_LOOK, _UNATTENDED, _SILENCE = 6.0, 16.0, 8.0


def manifest(nodes: int) -> dict[str, Any]:
    """The DaemonSet of the demo: partition holds all nodes but the canaries."""
    labels = {"app": "agent"}
    return {
        "apiVersion": ADVANCED.api_version,
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": BUDGET, "partition": nodes - CANARIES},
            },
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "agent", "image": _OLD}]},
            },
        },
    }


class FleetObserver:
    """Watches nodes, pods and the DaemonSet, draws the nodes, and records what must not happen."""

    def __init__(self, grid: NodeGrid) -> None:
        self.nodes: Cache[Node] = Cache()
        self.pods: Cache[Pod] = Cache()
        self.daemonsets: Cache[DaemonSet] = Cache()
        self.image = _OLD  # the one that the template has
        self.silent = ""  # the node that was made silent
        self.updating = False  # the promises hold for updates, not for the first start
        self.most_down = 0
        self.most_pods_per_node = 0
        self.tried: set[str] = set()  # nodes that had a pod of the bad version
        self._grid = grid
        self._changed = asyncio.Event()
        self.nodes.subscribe(lambda _before, _after: self._observe())
        self.pods.subscribe(lambda _before, _after: self._observe())
        self.daemonsets.subscribe(lambda _before, _after: self._observe())

    def watch(self, transport: Transport, clock: Clock) -> list[Coroutine[Any, Any, None]]:
        """Return what fills the caches as long as it runs."""
        daemonset = require_identity(decode_daemonset)
        watchers: tuple[Watcher[Any], ...] = (
            Watcher(transport, clock, resource=NODES, decode=_node, consumer=self.nodes),
            Watcher(transport, clock, resource=PODS, decode=_pod, consumer=self.pods),
            Watcher(
                transport, clock, resource=ADVANCED, decode=daemonset, consumer=self.daemonsets
            ),
        )
        return [watcher.run() for watcher in watchers]

    def marks(self) -> dict[str, NodeMark]:
        """The mark of every node."""
        marks = dict.fromkeys(self.nodes.all(), NodeMark.MISSING)
        for pod in self.pods.all().values():
            marks[pod.node] = self._mark_of(pod)
        if self.silent:
            marks[self.silent] = NodeMark.SILENT
        return marks

    def count(self, mark: NodeMark) -> int:
        """How many nodes have this mark."""
        return list(self.marks().values()).count(mark)

    def message(self) -> str:
        """What the condition Progressing says."""
        found = self.daemonsets.all().values()
        conditions = [each for ds in found for each in ds.status.conditions]
        return next((each.message for each in conditions if each.type == PROGRESSING), "")

    async def wait_until(self, reached: Callable[[], bool], what: str) -> None:
        """Wait for a condition; raises UserError if nothing changes before it holds."""
        try:
            while not reached():
                self._changed.clear()
                async with asyncio.timeout(_NO_CHANGE_TIMEOUT):
                    await self._changed.wait()
        except TimeoutError:
            raise UserError(f"the demo gave up waiting until {what}") from None

    def _observe(self) -> None:
        marks = self.marks()
        if self.updating:
            self.most_down = max(self.most_down, _down(marks))
            places = Counter(pod.node for pod in self.pods.all().values())
            self.most_pods_per_node = max(self.most_pods_per_node, *places.values())
            self.tried |= {pod.node for pod in self.pods.all().values() if _image_of(pod) == _BAD}
        if self.pods.all():
            self._grid.draw(marks, self._caption(marks))
        self._changed.set()

    def _caption(self, marks: dict[str, NodeMark]) -> str:
        standing = list(marks.values())
        text = f"{standing.count(NodeMark.NEW)} of {len(standing)} nodes run {self.image}"
        if self.updating:
            text += f"; {_down(marks)} down, promised at most {BUDGET}"
        return f"{text}; {self.silent} is silent" if self.silent else text

    def _mark_of(self, pod: Pod) -> NodeMark:
        if pod.terminating:
            return NodeMark.GOING
        if is_ready(pod):
            return NodeMark.NEW if _image_of(pod) == self.image else NodeMark.OLD
        failed = any(each.restart_count for each in pod.status.container_statuses)
        return NodeMark.FAILING if failed and _image_of(pod) == _BAD else NodeMark.COMING


_node: Final = Decoder(Node).one
_pod: Final = Decoder(Pod).one


def _image_of(pod: Pod) -> str:
    return pod.spec.containers[0].image


def _down(marks: dict[str, NodeMark]) -> int:
    """How many nodes have no working pod; a silent node is not down for an update."""
    standing = (NodeMark.OLD, NodeMark.NEW, NodeMark.SILENT)
    return sum(mark not in standing for mark in marks.values())


class Demo:
    """The story: each method is a step of it and returns when the step has been seen."""

    def __init__(
        self, client: Client, clock: Clock, observer: FleetObserver, grid: NodeGrid, speed: float
    ) -> None:
        self.kept: list[tuple[str, object, bool]] = []  # promise, what was seen, whether it held
        self._client = client
        self._clock = clock
        self._observer = observer
        self._grid = grid
        self._speed = speed
        self._nodes = len(observer.marks())

    async def play(self) -> None:
        """Play all steps and print which promises held."""
        self._grid.say(
            f"A cluster of {self._nodes} simulated nodes and the real controller.\n"
            f"One mark for each node:\n{self._grid.legend()}"
        )
        began = self._clock.monotonic()
        for step in (self._install, self._canary, self._roll_out, self._mistake, self._undo):
            await step()
        self._print_summary(self._clock.monotonic() - began)

    async def _install(self) -> None:
        self._grid.title("1 Install", f"{_OLD} on every node")
        await self._client.write(
            verbs.create(ADVANCED, manifest(self._nodes), namespace="default"), bytes
        )
        await self._updated(self._nodes, "every node has its pod")
        await self._pause(_LOOK)

    async def _canary(self) -> None:
        held = self._nodes - CANARIES
        self._grid.title("2 Canary", f"{_NEW}, held back on {held} nodes (partition: {held})")
        self._observer.updating = True
        await self._set_image(_NEW)
        await self._updated(CANARIES, "the canaries are available")
        await self._pause(_LOOK)
        seen = self._observer.count(NodeMark.OLD)
        self.kept.append((f"{held} nodes are held during the canary", seen, seen == held))

    async def _roll_out(self) -> None:
        observer = self._observer
        self._grid.title("3 Roll out", "to all nodes (partition: 0), one of which has gone silent")
        silent = sorted(observer.nodes.all())[self._nodes // 2]
        observer.silent = silent
        await annotate_node(self._client, silent, {STOPPED: "true"})
        await observer.wait_until(
            lambda: observer.nodes.all()[silent].ready == "Unknown", "a silent node is reported"
        )
        await self._patch({"updateStrategy": {"rollingUpdate": {"partition": 0}}})
        await self._updated(self._nodes - 1, "all nodes but the silent one are updated")
        seen = observer.count(NodeMark.NEW)
        self.kept.append(("one silent node stops no other", seen, seen == self._nodes - 1))
        await self._pause(_LOOK)
        observer.silent = ""
        await annotate_node(self._client, silent, {STOPPED: None})
        await self._updated(self._nodes, "the node that was silent is updated")
        await self._pause(_LOOK)

    async def _mistake(self) -> None:
        self._grid.title("4 A mistake", f"{_BAD} for all nodes")
        await self._set_image(_BAD)
        await self._observer.wait_until(
            lambda: self._observer.count(NodeMark.FAILING) == BUDGET, "the bad version has failed"
        )
        await self._pause(_UNATTENDED)
        # Between two crashes the containers run for a moment.
        await self._observer.wait_until(
            lambda: f"{BUDGET} CrashLoopBackOff" in self._observer.message(),
            "the condition names the nodes that fail",
        )
        tried = len(self._observer.tried)
        self.kept.append((f"a bad version takes at most {BUDGET} nodes", tried, tried <= BUDGET))

    async def _undo(self) -> None:
        # Nothing may be drawn between the note and the next title.
        self._grid.note(f"The DaemonSet says: {self._observer.message()}")
        self._grid.title("5 Undo", f"back to {_NEW}")
        await self._set_image(_NEW)
        await self._updated(self._nodes, "the bad version is gone")

    def _print_summary(self, seconds: float) -> None:
        observer = self._observer
        self.kept += (
            (
                f"never more than {BUDGET} nodes down at once",
                observer.most_down,
                observer.most_down <= BUDGET,
            ),
            (
                "never two pods on a node",
                observer.most_pods_per_node,
                observer.most_pods_per_node <= 1,
            ),
        )
        self._grid.title("Done", f"in {seconds:.0f} s")
        for promise, seen, good in self.kept:
            word = self._grid.styled("kept  ", colour="green") if good else "BROKEN"
            self._grid.say(f"   {word}  {promise:<41} seen: {seen}")
        if not all(good for *_, good in self.kept):
            raise UserError("a promise was broken; please report what is printed above")
        self._grid.say("\nNothing is left running. Next, a cluster for your kubectl: make up")

    async def _set_image(self, image: str) -> None:
        self._observer.image = image
        await self._patch(
            {"template": {"spec": {"containers": [{"name": "agent", "image": image}]}}}
        )

    async def _patch(self, spec: dict[str, Any]) -> None:
        await self._client.write(
            verbs.patch(ADVANCED, "agent", {"spec": spec}, namespace="default"), bytes
        )

    async def _updated(self, nodes: int, what: str) -> None:
        observer = self._observer
        await observer.wait_until(lambda: observer.count(NodeMark.NEW) == nodes, what)

    async def _pause(self, simulated: float) -> None:
        await self._clock.sleep(simulated / self._speed)


async def run_demo(nodes: int, speed: float, stream: TextIO) -> None:
    """Start a cluster and the controller, tell the story, stop everything."""
    clock: Clock = SystemClock()
    transport = LocalTransport(Api(clock=clock))
    behaviour = Behaviour(speed=speed, heartbeat_grace=_SILENCE)
    components = Components(transport, clock, ComponentOptions(nodes=nodes, behaviour=behaviour))
    controller = Controller(transport, clock, ControllerOptions(native=True))
    grid = NodeGrid(stream)
    observer = FleetObserver(grid)
    running = (components.run(), controller.run(), *observer.watch(transport, clock))
    async with asyncio.TaskGroup() as group:
        background = [group.create_task(each) for each in running]
        await components.ready()
        await observer.wait_until(lambda: len(observer.nodes.all()) == nodes, "all nodes are there")
        await Demo(Client(transport, clock), clock, observer, grid, speed).play()
        for task in background:
            task.cancel()
