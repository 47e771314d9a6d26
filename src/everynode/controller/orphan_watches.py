"""OrphanWatches: watches for pods that match a selector and that the pod watch does not show.

The pod watch selects pods with a revision hash. A bare pod with the labels of a DaemonSet, or an
own pod that lost its hash, is not among them. One more watch per DaemonSet shows these at once: its
selector and the absence of the hash, metadata only. At rest it delivers nothing but bookmarks.

Every watch takes a connection, so that only the first `MAX_WATCHED` DaemonSets have one. For the
others, and while a watch is broken, the periodic scan remains (`controller/adoption.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from everynode.api.decode import require_identity
from everynode.api.keys import REVISION_HASH
from everynode.api.objects import Pod
from everynode.clock import Clock
from everynode.controller.requests import selected_by
from everynode.controller.state import DaemonSetState
from everynode.kube.resources import PODS
from everynode.kube.transport import Transport
from everynode.kube.watch.cache import NONE_UNREADABLE
from everynode.kube.watch.decode import Decoder
from everynode.kube.watch.watcher import Watcher

MAX_WATCHED: Final = 32  # a quarter of the connections that the transport opens at most
_decode: Final = require_identity(Decoder(Pod).one)

OrphanSeen = Callable[[DaemonSetState, Pod], None]


class _Consumer:
    """Hands every pod that a watch shows to the handler; nothing is kept."""

    def __init__(self, state: DaemonSetState, seen: OrphanSeen) -> None:
        self._state = state
        self._seen = seen

    def replace(
        self, objects: Iterable[Pod], version: str, unread: Mapping[str, str] = NONE_UNREADABLE
    ) -> None:
        for pod in objects:
            self._seen(self._state, pod)

    def upsert(self, item: Pod) -> None:
        self._seen(self._state, item)

    def delete(self, item: Pod) -> None:
        """It was adopted, got another label, or is gone."""

    def bookmark(self, version: str) -> None:
        pass


class OrphanWatches:
    """The watches of one term, by DaemonSet."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._running: dict[str, asyncio.Task[None]] = {}

    def follow(self, state: DaemonSetState, seen: OrphanSeen, tasks: asyncio.TaskGroup) -> None:
        """Watch for orphans of this DaemonSet, unless that is done or too many are watched."""
        if state.key in self._running or len(self._running) >= MAX_WATCHED:
            return
        options = selected_by(state.ds)
        if options is None:
            return
        watcher = Watcher(
            self._transport,
            self._clock,
            resource=PODS,
            decode=_decode,
            consumer=_Consumer(state, seen),
            options=replace(options, labels=f"{options.labels},!{REVISION_HASH}"),
            metadata_only=True,
        )
        self._running[state.key] = tasks.create_task(watcher.run())

    def forget(self, state: DaemonSetState) -> None:
        """The DaemonSet is gone."""
        task = self._running.pop(state.key, None)
        if task is not None:
            task.cancel()
