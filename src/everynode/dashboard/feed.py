"""Feeds: one live watch for each set that is viewed, shared by its viewers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

import msgspec

from everynode.api.daemonset import DaemonSet, Flavour
from everynode.clock import Clock
from everynode.dashboard.changes import diff, is_empty
from everynode.dashboard.curve import ExpectedEnd, add_point, keep_forecast, past, point_of
from everynode.dashboard.guard import Refusal
from everynode.dashboard.model import (
    ModelCache,
    Object,
    PageModel,
    Point,
    build_model,
    snapshot_message,
)
from everynode.dashboard.story import Diary
from everynode.dashboard.summary import help_with, name_trouble
from everynode.inspect.evaluate import Evaluation, Evaluator
from everynode.inspect.live import LiveView

MAX_VIEWERS: Final = 32
_BATCH_INTERVAL: Final = 0.2  # seconds between two batches, at least
_MAX_BATCH_INTERVAL: Final = 8.0  # an evaluation takes long also where other processes are busy
_TICK: Final = 1.0  # pace and ages change without an event
_MAX_KEPT_BATCHES: Final = 256  # batches that are kept for viewers that come back
_LINGER: Final = 30.0  # seconds that a feed goes on without viewers, so that a resume has no gap
_MAX_UNVIEWED: Final = 4  # feeds that go on without viewers


SetKey = tuple[Flavour, str, str]  # kind, namespace, name


class Message(msgspec.Struct, frozen=True):
    """One server-sent event, encoded once for all viewers."""

    id: int
    data: bytes


def encode(event: str, content: Object, id: int | None = None) -> bytes:
    """Return a server-sent event."""
    head = f"event: {event}\n" if id is None else f"event: {event}\nid: {id}\n"
    return head.encode() + b"data: " + msgspec.json.encode(content) + b"\n\n"


class Feed:
    """One set as it is: its last evaluation, its model, and the batches that led to it.

    Evaluations take at most a `share` of the time.
    """

    def __init__(self, live: LiveView, clock: Clock, uid: str, share: float = 0.2) -> None:
        self.evaluation: Evaluation | None = None
        self.model: PageModel | None = None
        self.gone = False
        self.trouble = ""
        self.viewers = 0
        self._clock = clock
        self._share = share
        self._uid = uid
        self._live = live
        self._evaluator = Evaluator()
        self.diary = Diary()
        self._cache = ModelCache()
        self._history: list[Point] = []
        self._forecast: ExpectedEnd | None = None
        # Batches go from `id - 1` to `id`. A new beginning leaves a gap, so that no viewer can
        # resume across it.
        self._id = int(clock.now() * 1000)
        self._batches: deque[Message] = deque(maxlen=_MAX_KEPT_BATCHES)
        self._snapshot: Message | None = None
        self._news = asyncio.Event()

    async def run(self) -> None:
        """Follow the set until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._live.run())
            group.create_task(self._follow())

    async def _follow(self) -> None:
        clock = self._clock
        while True:
            self._live.changed.clear()
            began = clock.monotonic()
            if self._live.begun:
                self._update(clock.now())
            took = clock.monotonic() - began
            pause = max(_BATCH_INTERVAL, took * (1 / self._share - 1))
            await clock.sleep(min(pause, _MAX_BATCH_INTERVAL))
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK):
                    await self._live.changed.wait()

    def _update(self, now: float) -> None:
        snapshot = self._live.current()
        if snapshot is not None and snapshot.ds.metadata.uid != self._uid:
            snapshot = None  # another set of this name, perhaps with another selector
        troubles = sorted(self._live.troubles.items())
        trouble = "; ".join(name_trouble(name, why) for name, why in troubles)
        if (snapshot is None, trouble) != (self.gone, self.trouble):
            self.gone, self.trouble = snapshot is None, trouble
            self._notify()
        if snapshot is None:
            return
        self.evaluation = self._evaluator.evaluate(snapshot, now)
        fleet = self.evaluation.fleet
        if self.model is None:
            self._history = past(self.evaluation, now)
        add_point(self._history, point_of(fleet, now))
        self._forecast = keep_forecast(self._forecast, fleet, now)
        line = self._forecast.line if self._forecast is not None else ()
        model = build_model(self.evaluation, self._history, now, line, self._cache)
        if self.model is not None and self.model.names == model.names:
            self.diary.note(model.names, self.model.states, model.states, now)
        batch = None if self.model is None else diff(self.model, model)
        if batch is None:
            self._id += 2  # nothing leads from the batches before to this
            self._batches.clear()
        elif is_empty(batch):
            return
        else:
            self._id += 1
            self._batches.append(Message(self._id, encode("batch", batch, self._id)))
        self.model, self._snapshot = model, None
        self._notify()

    def _notify(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def since(self, last: int | None) -> tuple[int | None, list[bytes]]:
        """Return the events after `last`: batches if all are kept, else a snapshot."""
        if self.model is None or last == self._id:
            return last, []
        kept = [each for each in self._batches if last is not None and each.id > last]
        if kept and last is not None and kept[0].id == last + 1:
            return self._id, [each.data for each in kept]
        if self._snapshot is None:
            content = snapshot_message(self.model)
            self._snapshot = Message(self._id, encode("snapshot", content, self._id))
        return self._id, [self._snapshot.data]

    async def events(self, last: int | None) -> AsyncIterator[bytes]:
        """Yield what a viewer has to be sent; what it misses while it reads is put together."""
        sent_trouble = ""
        while True:
            news = self._news
            if self.trouble != sent_trouble:
                sent_trouble = self.trouble
                content = {"message": sent_trouble, "help": help_with(sent_trouble)}
                yield encode("trouble", content)
            last, events = self.since(last)
            for event in events:
                yield event
            if self.gone:
                yield encode("gone", {"message": "the set was deleted"})
                return
            if news is self._news:
                await news.wait()

    async def ready(self, seconds: float) -> None:
        """Wait until the set has been evaluated; raises Refusal if that takes too long."""
        try:
            async with asyncio.timeout(seconds):
                while self.evaluation is None and not self.gone:
                    news = self._news
                    await news.wait()
        except TimeoutError:
            raise Refusal(
                503,
                self.trouble or "the API server has not answered yet",
                "check that it runs and that you may list DaemonSets, pods and nodes",
            ) from None
        if self.gone:
            raise Refusal(404, "the set was deleted", "go back to the list of sets")


class _Watched:
    """A feed that runs, and its end if that is near."""

    def __init__(self, feed: Feed) -> None:
        self.feed = feed
        self.running = asyncio.create_task(feed.run())
        self.ending: asyncio.Task[None] | None = None

    @property
    def usable(self) -> bool:
        return not self.feed.gone and not self.running.done()

    def keep(self) -> None:
        """Call off the end."""
        if self.ending is not None:
            self.ending.cancel()
            self.ending = None

    async def stop(self) -> None:
        self.running.cancel()
        await asyncio.wait([self.running])


class Feeds:
    """The feeds of all sets that are viewed; one ends a while after its last viewer has left."""

    def __init__(
        self,
        follow: Callable[[DaemonSet], LiveView],
        clock: Clock,
        *,
        linger: float = _LINGER,
        share: float = 0.2,
    ) -> None:
        self._follow = follow
        self._clock = clock
        self._linger = linger
        self._share = share
        self._feeds: dict[SetKey, _Watched] = {}
        self.viewers = 0

    def __len__(self) -> int:
        return len(self._feeds)

    @asynccontextmanager
    async def view(self, key: SetKey, ds: DaemonSet) -> AsyncIterator[Feed]:
        """View a set inside a `with` block; raises Refusal when there are too many viewers."""
        if self.viewers >= MAX_VIEWERS:
            raise Refusal(503, f"{MAX_VIEWERS} viewers are connected already", "close another page")
        old = self._feeds.get(key)
        if old is not None and old.usable:
            watched = old
        else:
            feed = Feed(self._follow(ds), self._clock, ds.uid, self._share)
            watched = self._feeds[key] = _Watched(feed)
            if old is not None and old.ending is not None:
                old.keep()
                await old.stop()
        watched.keep()
        watched.feed.viewers += 1
        self.viewers += 1
        try:
            yield watched.feed
        finally:
            watched.feed.viewers -= 1
            self.viewers -= 1
            if not watched.feed.viewers:
                await self._leave(key, watched)

    async def _leave(self, key: SetKey, watched: _Watched) -> None:
        """End a feed without viewers: later if one may come back to it, else at once."""
        unseen = [each for each in self._feeds.values() if each.ending is not None]
        if self._linger and watched.usable and len(unseen) < _MAX_UNVIEWED:
            watched.ending = asyncio.create_task(self._end_later(key, watched))
        else:
            await self._end(key, watched)

    async def _end_later(self, key: SetKey, watched: _Watched) -> None:
        await self._clock.sleep(self._linger)
        await self._end(key, watched)

    async def _end(self, key: SetKey, watched: _Watched) -> None:
        if self._feeds.get(key) is watched:
            del self._feeds[key]
        await watched.stop()

    async def close(self) -> None:
        """End all feeds."""
        left, self._feeds = list(self._feeds.values()), {}
        for watched in left:
            watched.keep()
            await watched.stop()
