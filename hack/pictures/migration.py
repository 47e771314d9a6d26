"""The migration in three steps: who owns the six pods, before, in between and after."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from everynode.api.objects import Pod
from everynode.apiserver.transport.local import LocalTransport
from everynode.apiserver.verbs.dispatch import Api
from everynode.components.run import ComponentOptions, Components
from everynode.controller.run import Controller, ControllerOptions
from everynode.forecast.recording import NodeState
from everynode.kube import verbs
from everynode.kube.client import Client
from everynode.kube.resources import ADVANCED, DAEMONSETS, PODS
from everynode.kube.watch.cache import Cache
from everynode.kube.watch.decode import Decoder
from everynode.kube.watch.watcher import Watcher
from everynode.pictures.cells import draw_cell
from everynode.pictures.svg import MARGIN, WIDTH, Svg
from everynode.sim.engine.clock import SimClock
from everynode.sim.engine.loop import SimLoop
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Timing

_NODES: Final = 6
_NAME: Final = "ebpf-agent"
_NAMESPACE: Final = "default"
_ARROW: Final = 30.0  # between two steps
_SECONDS: Final = 120  # of virtual time, within which each step is done
Owners = dict[str, str]  # apiVersion of the owner by the pod's uid; empty without one


def draw() -> str:
    """Return the picture."""
    loop = SimLoop(1)
    try:
        steps: list[Owners] = loop.run_until_complete(_Migration(loop).play())
    finally:
        loop.close()
    assert [{*step} for step in steps] == [{*steps[0]}] * 3, "the pods stay the same"
    svg = Svg(
        "From the native kind to the Advanced one in three steps",
        "Before, the native DaemonSet owns six pods. It is deleted and its pods stay, without an "
        "owner. The Advanced DaemonSet is created and adopts the same six pods: none restarts.",
    )
    svg.text(MARGIN, 38, "Two kinds, the same six pods", "text heading")
    room = (WIDTH - 2 * MARGIN - 2 * _ARROW) / 3
    titles = ("1 · Native", "2 · Deleted", "3 · Advanced")
    for number, (title, owners) in enumerate(zip(titles, steps, strict=True)):
        left = MARGIN + number * (room + _ARROW)
        if number:
            svg.text(left - _ARROW / 2, 188, "→", "quiet middle")
        svg.text(left, 72, title, "text head")
        _draw_step(svg, left, room, owners)
        words = "the same 6 pods" if number else f"{len(owners)} pods"
        svg.text(left + room / 2, 220, words, "text small middle")
    return svg.render(244)


def _draw_step(svg: Svg, left: float, room: float, owners: Owners) -> None:
    """Draw the pods, and what owns them."""
    (owner,) = {*owners.values()}
    middle = left + room / 2
    look = "box quiet-line" if owner else "box gone quiet-line"
    svg.rect(left + 0.7, 88, room - 1.4, 48, look, round=8)
    if owner:
        svg.text(middle, 108, "DaemonSet", "text small middle")
        svg.text(middle, 126, owner.partition("/v1beta1")[0], "quiet tiny middle")
    else:
        svg.text(middle, 117, "no owner", "quiet small middle")
    pitch = room / _NODES
    for number in range(len(owners)):
        x = left + (number + 0.5) * pitch
        if owner:
            svg.line(middle, 137, x, 173, "quiet-line")
        draw_cell(svg, NodeState.UPDATED, x - 8, 175, 16)


class _Migration:
    """The steps of the page, against the embedded server on virtual time."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self._clock = SimClock(loop, "1/migration")
        transport = LocalTransport(Api(clock=self._clock))
        self._client = Client(transport, self._clock)
        behaviour = Timing().behaviour()
        self._components = Components(
            transport, self._clock, ComponentOptions(nodes=_NODES, behaviour=behaviour)
        )
        self._controller = Controller(transport, self._clock, ControllerOptions(native=True))
        self._pods: Cache[Pod] = Cache()
        self._watcher = Watcher(
            transport, self._clock, resource=PODS, decode=Decoder(Pod).one, consumer=self._pods
        )

    async def play(self) -> list[Owners]:
        """Return who owns each pod: at first, after the delete, and at the end."""
        parts = (self._components, self._controller, self._watcher)
        tasks = [self._loop.create_task(part.run()) for part in parts]
        await self._components.ready()
        await self._create(DAEMONSETS, daemonset(_NAME, api_version="apps/v1"))
        found = [await self._owners(lambda owner: owner == "apps/v1")]
        orphan = verbs.delete(DAEMONSETS, _NAME, namespace=_NAMESPACE, propagation="Orphan")
        await self._client.write(orphan, bytes)
        found.append(await self._owners(lambda owner: not owner))
        await self._create(ADVANCED, daemonset(_NAME))
        found.append(await self._owners(lambda owner: owner == ADVANCED.api_version))
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return found

    async def _create(self, resource: Any, manifest: dict[str, Any]) -> None:
        await self._client.write(verbs.create(resource, manifest, namespace=_NAMESPACE), bytes)

    async def _owners(self, wanted: Callable[[str], bool]) -> Owners:
        for _ in range(_SECONDS):
            await self._clock.sleep(1.0)
            pods = sorted(self._pods.all().values(), key=lambda pod: pod.uid)
            found = {pod.uid: _owner(pod) for pod in pods}
            if len(found) == _NODES and all(map(wanted, found.values())):
                return found
        raise AssertionError(f"the step did not end: {found}")


def _owner(pod: Pod) -> str:
    controller = pod.metadata.controller
    return controller.api_version if controller is not None else ""
