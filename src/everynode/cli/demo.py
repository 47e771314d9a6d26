"""`everynode demo`: a canary rollout on an embedded cluster, drawn live, in ten seconds."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TextIO

import click

from everynode.api.objects import Pod
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.cli.serving.simulated_nodes import speed_option
from everynode.cli.terminal.node_grid import NodeGrid, NodeMark
from everynode.clock import Clock, SystemClock
from everynode.components.kubelet.behaviour import Behaviour
from everynode.components.run import ComponentOptions, Components
from everynode.controller.run import Controller, ControllerOptions
from everynode.decide.node.availability import is_ready
from everynode.decide.pods.patch import node_of
from everynode.errors import UserError, first_user_error
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.resources import ADVANCED, PODS
from everynode.kube.watch.cache import Cache
from everynode.kube.watch.decode import Decoder
from everynode.kube.watch.watcher import Watcher

DEMO_NODES: Final = 20
MOST_NODES: Final = 1000  # more do not fit on a screen
CANARIES: Final = 2
BUDGET: Final = 3
_NO_CHANGE_TIMEOUT: Final = 60.0  # seconds; a change normally comes within one
_OLD, _NEW = "agent:v1", "agent:v2"


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


class PodObserver:
    """Watches the pods, draws them, and records the most nodes down and the most pods per node."""

    def __init__(self, nodes: list[str], grid: NodeGrid) -> None:
        self.pods: Cache[Pod] = Cache()
        self.most_down = 0
        self.most_pods_per_node = 0
        self._nodes = nodes
        self._grid = grid
        self._changed = asyncio.Event()
        self._checking = False  # the promises hold for updates, not for the first start
        self.pods.subscribe(self._pod_changed)

    def marks(self) -> dict[str, NodeMark]:
        """The mark of every node."""
        marks = dict.fromkeys(self._nodes, NodeMark.MISSING)
        for pod in self.pods.all().values():
            marks[node_of(pod)] = _mark_of(pod)
        return marks

    def count(self, *marks: NodeMark) -> int:
        """How many nodes have one of these marks."""
        return sum(mark in marks for mark in self.marks().values())

    def start_checking(self) -> None:
        """From now on record the most nodes down and the most pods per node."""
        self._checking = True

    async def wait_until(self, reached: Callable[[], bool], what: str) -> None:
        """Wait for a condition; raises UserError if the pods stop changing before it holds."""
        try:
            while not reached():
                self._changed.clear()
                async with asyncio.timeout(_NO_CHANGE_TIMEOUT):
                    await self._changed.wait()
        except TimeoutError:
            raise UserError(f"the demo gave up waiting until {what}") from None

    def _pod_changed(self, before: Pod | None, after: Pod | None) -> None:
        marks = self.marks()
        if self._checking:
            up = sum(mark in (NodeMark.OLD, NodeMark.NEW) for mark in marks.values())
            self.most_down = max(self.most_down, len(self._nodes) - up)
            places = Counter(node_of(pod) for pod in self.pods.all().values())
            self.most_pods_per_node = max(self.most_pods_per_node, *places.values())
        self._grid.draw(marks, self._caption(marks))
        self._changed.set()

    def _caption(self, marks: dict[str, NodeMark]) -> str:
        standing = list(marks.values())
        goal, image = (NodeMark.NEW, _NEW) if self._checking else (NodeMark.OLD, _OLD)
        text = f"{standing.count(goal)} of {len(standing)} nodes run {image}"
        if not self._checking:
            return text
        up = standing.count(NodeMark.OLD) + standing.count(NodeMark.NEW)
        return f"{text}; {len(standing) - up} down, promised at most {BUDGET}"


def _mark_of(pod: Pod) -> NodeMark:
    if pod.terminating:
        return NodeMark.GOING
    if not is_ready(pod):
        return NodeMark.COMING
    return NodeMark.NEW if pod.spec.containers[0].image == _NEW else NodeMark.OLD


async def run_demo(nodes: int, speed: float, stream: TextIO) -> None:
    """Start a cluster and the controller, roll out, print which promises held, stop everything."""
    clock: Clock = SystemClock()
    transport = LocalTransport(Api(clock=clock))
    behaviour = Behaviour(speed=speed)
    components = Components(transport, clock, ComponentOptions(nodes=nodes, behaviour=behaviour))
    controller = Controller(transport, clock, ControllerOptions(native=True))
    grid = NodeGrid(stream)
    async with asyncio.TaskGroup() as group:
        background = [group.create_task(components.run()), group.create_task(controller.run())]
        await components.ready()
        observer = PodObserver(sorted(components.informers.nodes.all()), grid)
        watcher = Watcher(
            transport, clock, resource=PODS, decode=Decoder(Pod).one, consumer=observer.pods
        )
        background.append(group.create_task(watcher.run()))
        await _roll_out(Client(transport, clock), clock, observer, grid)
        for task in background:
            task.cancel()


async def _roll_out(client: Client, clock: Clock, observer: PodObserver, grid: NodeGrid) -> None:
    nodes = len(observer.marks())
    grid.say(f"A cluster of {nodes} simulated nodes, one mark each:\n{grid.legend()}")
    began = clock.monotonic()
    grid.title("1 Install", f"image: {_OLD}")
    await client.write(verbs.create(ADVANCED, manifest(nodes), namespace="default"), bytes)
    await observer.wait_until(
        lambda: observer.count(NodeMark.OLD) == nodes, "every node has its pod"
    )

    held_back = nodes - CANARIES
    grid.title("2 Canary", f"image: {_NEW}, partition: {held_back} (that many keep {_OLD})")
    observer.start_checking()
    await _patch(client, {"template": {"spec": {"containers": [{"name": "agent", "image": _NEW}]}}})
    await observer.wait_until(
        lambda: observer.count(NodeMark.NEW) == CANARIES, "the canaries are available"
    )
    held = observer.count(NodeMark.OLD)

    grid.title("3 Roll out", f"partition: 0, maxUnavailable: {BUDGET} (as fast as that allows)")
    await _patch(client, {"updateStrategy": {"rollingUpdate": {"partition": 0}}})
    await observer.wait_until(
        lambda: observer.count(NodeMark.NEW) == nodes, "the rollout is complete"
    )
    _print_summary(observer, grid, held=held, seconds=clock.monotonic() - began)


async def _patch(client: Client, spec: dict[str, Any]) -> None:
    await client.write(verbs.patch(ADVANCED, "agent", {"spec": spec}, namespace="default"), bytes)


def _print_summary(observer: PodObserver, grid: NodeGrid, *, held: int, seconds: float) -> None:
    nodes = len(observer.marks())
    kept = [
        (
            f"at most {BUDGET} nodes down at once",
            f"{observer.most_down}",
            observer.most_down <= BUDGET,
        ),
        (f"{nodes - CANARIES} nodes held during the canary", f"{held}", held == nodes - CANARIES),
        ("one pod per node", f"{observer.most_pods_per_node}", observer.most_pods_per_node <= 1),
    ]
    grid.title("Done", f"in {seconds:.0f} s")
    for promise, seen, good in kept:
        word = grid.styled("kept  ", colour="green") if good else "BROKEN"
        grid.say(f"   {word}  {promise:<34} seen: {seen}")
    if not all(good for *_, good in kept):
        raise UserError("a promise was broken; please report what is printed above")
    grid.say("\nEverything is stopped and nothing is left. Next, for the kubectl you have: make up")


@click.command()
@click.option(
    "--nodes",
    default=DEMO_NODES,
    show_default=True,
    type=click.IntRange(BUDGET + CANARIES, MOST_NODES),
    metavar="N",
    help="How many nodes the cluster has.",
)
@speed_option(4.0)
def command(nodes: int, speed: float) -> None:
    """Watch a canary rollout over an embedded cluster; ends by itself, leaves nothing behind.

    Two nodes get the new version first, the others are held; then they are released, and never
    more than three are down at a time. It takes ten seconds.

    \b
    everynode demo --nodes 100
    """
    try:
        asyncio.run(run_demo(nodes, speed, sys.stdout))
    except BaseExceptionGroup as errors:
        raise first_user_error(errors) from None
