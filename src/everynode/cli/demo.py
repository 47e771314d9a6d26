"""`everynode demo`: a canary rollout over an embedded cluster, watched live, in ten seconds."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TextIO

import click

from everynode.api.decode import Decoder
from everynode.api.objects import Pod
from everynode.cli.errors import UserError, first_to_mend
from everynode.cli.picture import Mark, Picture
from everynode.cli.simulation import speed_option
from everynode.clock import Clock, SystemClock
from everynode.cluster.local import LocalTransport
from everynode.cluster.machinery.behaviour import Behaviour
from everynode.cluster.machinery.run import Machinery
from everynode.cluster.machinery.run import Options as MachineryOptions
from everynode.cluster.rest import Api
from everynode.controller.run import Controller, Options
from everynode.decide.availability import is_ready
from everynode.decide.patch import node_of
from everynode.kube import verbs
from everynode.kube.cache import Cache
from everynode.kube.client import Client
from everynode.kube.resources import ADVANCED, PODS
from everynode.kube.watch import Watcher

NODES: Final = 20
MOST_NODES: Final = 1000  # as many as a screen can show
CANARIES: Final = 2
BUDGET: Final = 3
_PATIENCE: Final = 60.0  # real seconds without any change; far more than any takes
_OLD, _NEW = "agent:v1", "agent:v2"


def manifest(nodes: int) -> dict[str, Any]:
    """The DaemonSet of the demo: most nodes are held back until the canaries have proved it."""
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


class Fleet:
    """What the demo sees of the cluster, through a watch like anybody else's."""

    def __init__(self, nodes: list[str], picture: Picture) -> None:
        self.pods: Cache[Pod] = Cache()
        self.most_down = 0
        self.most_together = 0
        self._nodes = nodes
        self._picture = picture
        self._changed = asyncio.Event()
        self._judging = False  # the promises hold for updates, not for the first start
        self.pods.subscribe(self._pod_changed)

    def marks(self) -> dict[str, Mark]:
        """How every node stands."""
        marks = dict.fromkeys(self._nodes, Mark.MISSING)
        for pod in self.pods.all().values():
            marks[node_of(pod)] = _mark(pod)
        return marks

    def count(self, *marks: Mark) -> int:
        """How many nodes stand so."""
        return sum(mark in marks for mark in self.marks().values())

    def judge(self) -> None:
        """From now on every node that is down counts."""
        self._judging = True

    async def until(self, reached: Callable[[], bool], what: str) -> None:
        """Wait for something to become true."""
        try:
            while not reached():
                self._changed.clear()
                async with asyncio.timeout(_PATIENCE):
                    await self._changed.wait()
        except TimeoutError:
            raise UserError(f"the demo gave up waiting until {what}") from None

    def _pod_changed(self, before: Pod | None, after: Pod | None) -> None:
        marks = self.marks()
        if self._judging:
            up = sum(mark in (Mark.OLD, Mark.NEW) for mark in marks.values())
            self.most_down = max(self.most_down, len(self._nodes) - up)
            places = Counter(node_of(pod) for pod in self.pods.all().values())
            self.most_together = max(self.most_together, *places.values())
        self._picture.draw(marks, self._caption(marks))
        self._changed.set()

    def _caption(self, marks: dict[str, Mark]) -> str:
        standing = list(marks.values())
        goal, image = (Mark.NEW, _NEW) if self._judging else (Mark.OLD, _OLD)
        text = f"{standing.count(goal)} of {len(standing)} nodes run {image}"
        if not self._judging:
            return text
        up = standing.count(Mark.OLD) + standing.count(Mark.NEW)
        return f"{text}; {len(standing) - up} down, promised at most {BUDGET}"


def _mark(pod: Pod) -> Mark:
    if pod.terminating:
        return Mark.GOING
    if not is_ready(pod):
        return Mark.COMING
    return Mark.NEW if pod.spec.containers[0].image == _NEW else Mark.OLD


async def show(nodes: int, speed: float, stream: TextIO) -> None:
    """Start everything, roll out, say what was promised and kept, stop everything."""
    clock: Clock = SystemClock()
    transport = LocalTransport(Api(clock=clock))
    behaviour = Behaviour(speed=speed)
    machinery = Machinery(transport, clock, MachineryOptions(nodes=nodes, behaviour=behaviour))
    controller = Controller(transport, clock, Options(native=True))
    picture = Picture(stream)
    async with asyncio.TaskGroup() as group:
        background = [group.create_task(machinery.run()), group.create_task(controller.run())]
        await machinery.ready()
        fleet = Fleet(sorted(machinery.shared.nodes.all()), picture)
        watcher = Watcher(
            transport, clock, resource=PODS, decode=Decoder(Pod).one, consumer=fleet.pods
        )
        background.append(group.create_task(watcher.run()))
        await _roll_out(Client(transport, clock), clock, fleet, picture)
        for task in background:
            task.cancel()


async def _roll_out(client: Client, clock: Clock, fleet: Fleet, picture: Picture) -> None:
    nodes = len(fleet.marks())
    picture.say(f"A cluster of {nodes} simulated nodes, one mark each:\n{picture.legend()}")
    began = clock.monotonic()
    picture.title("1 Install", f"image: {_OLD}")
    await client.write(verbs.create(ADVANCED, manifest(nodes), namespace="default"), bytes)
    await fleet.until(lambda: fleet.count(Mark.OLD) == nodes, "every node has its pod")

    held_back = nodes - CANARIES
    picture.title("2 Canary", f"image: {_NEW}, partition: {held_back} (so many keep the old one)")
    fleet.judge()
    await _patch(client, {"template": {"spec": {"containers": [{"name": "agent", "image": _NEW}]}}})
    await fleet.until(lambda: fleet.count(Mark.NEW) == CANARIES, "the canaries are available")
    held = fleet.count(Mark.OLD)

    picture.title("3 Roll out", f"partition: 0, maxUnavailable: {BUDGET} (as fast as that allows)")
    await _patch(client, {"updateStrategy": {"rollingUpdate": {"partition": 0}}})
    await fleet.until(lambda: fleet.count(Mark.NEW) == nodes, "the rollout is complete")
    _conclude(fleet, picture, held=held, seconds=clock.monotonic() - began)


async def _patch(client: Client, spec: dict[str, Any]) -> None:
    await client.write(verbs.patch(ADVANCED, "agent", {"spec": spec}, namespace="default"), bytes)


def _conclude(fleet: Fleet, picture: Picture, *, held: int, seconds: float) -> None:
    nodes = len(fleet.marks())
    kept = [
        (f"at most {BUDGET} nodes down at once", f"{fleet.most_down}", fleet.most_down <= BUDGET),
        (f"{nodes - CANARIES} nodes held during the canary", f"{held}", held == nodes - CANARIES),
        ("one pod per node", f"{fleet.most_together}", fleet.most_together <= 1),
    ]
    picture.title("Done", f"in {seconds:.0f} s")
    for promise, seen, good in kept:
        word = picture.styled("kept  ", colour="green") if good else "BROKEN"
        picture.say(f"   {word}  {promise:<34} seen: {seen}")
    if not all(good for *_, good in kept):
        raise UserError("a promise was broken; please report what is printed above")
    picture.say(
        "\nEverything is stopped and nothing is left. Next, for the kubectl you have: make up"
    )


@click.command()
@click.option(
    "--nodes",
    default=NODES,
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
    """
    try:
        asyncio.run(show(nodes, speed, sys.stdout))
    except BaseExceptionGroup as errors:
        raise first_to_mend(errors) from None
