"""Keeping the revisions: the target is stored before any pod names it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from everynode.api.daemonset import Fault
from everynode.api.decode import Decoder
from everynode.api.objects import ControllerRevision
from everynode.clock import Clock
from everynode.controller.calls import revision_request, selected_by
from everynode.controller.workload import Workload
from everynode.decide.actions import CreateRevision, DeleteRevision, RevisionAction
from everynode.decide.revisions import Choice, Revision, choose_target, prune, read_revision
from everynode.kube import verbs
from everynode.kube.cache import Cache
from everynode.kube.client import Client, MayNotWrite
from everynode.kube.errors import AlreadyExists, KubeError, NotFound
from everynode.kube.resources import REVISIONS

_PAUSE: Final = 2.0  # after a refused write; the watch brings us back sooner if something changes
_FIRST_DELAY: Final = 1.0  # before a revision that was lost twice is made again; then it doubles
_LONGEST_DELAY: Final = 300.0
_decoder: Final = Decoder(ControllerRevision)


class Teller(Protocol):
    """Whoever hears of trouble with revisions."""

    def revision_refused(self, workload: Workload, error: KubeError) -> None:
        """A write of a revision failed."""
        ...


@dataclass(slots=True)
class _Made:
    """The revision that was created last, and how often in a row."""

    name: str
    times: int
    again_at: float  # not before then, should it be lost


class History:
    """The revisions of all workloads."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        cache: Cache[ControllerRevision],
        again: Callable[[str, float], None],
        teller: Teller,
    ) -> None:
        self._client = client
        self._clock = clock
        self._cache = cache
        self._again = again  # look at the workload of this key at that time
        self._teller = teller
        self._taken: dict[str, frozenset[str]] = {}  # names that belong to somebody else
        self._made: dict[str, _Made] = {}

    def revisions(self, workload: Workload) -> tuple[list[Revision], list[Fault]]:
        """The stored revisions of a workload, and what is wrong with those that cannot be read."""
        found: list[Revision] = []
        faults: list[Fault] = []
        for stored in self._cache.by("owner", workload.key).values():
            revision = read_revision(stored, workload.key)
            if isinstance(revision, Fault):
                faults.append(revision)
            else:
                found.append(revision)
        return found, faults

    def choose(self, workload: Workload) -> Choice:
        """The target, and the writes that make it so."""
        revisions, _ = self.revisions(workload)
        taken = self._taken.get(workload.key, frozenset())
        return choose_target(workload.ds, revisions, workload.carried, taken=taken)

    def spare(self, workload: Workload, target: Revision) -> tuple[DeleteRevision, ...]:
        """The revisions that nobody needs any more."""
        owned = self._cache.by("owner", workload.key)
        if len(owned) <= workload.ds.history_limit + 1:
            return ()
        revisions, _ = self.revisions(workload)
        return prune(workload.ds, revisions, workload.carried, target=target)

    def due_at(self, workload: Workload, actions: Sequence[RevisionAction]) -> float:
        """When these writes may begin: 0 for now.

        Somebody may remove what we create, such as the garbage collector while we do not see yet
        that the DaemonSet is gone. We do not race with them.
        """
        made = self._made.get(workload.key)
        if made is None or not any(
            isinstance(action, CreateRevision) and action.name == made.name for action in actions
        ):
            return 0.0
        return made.again_at

    def forget(self, workload: Workload) -> None:
        """The DaemonSet is gone."""
        self._taken.pop(workload.key, None)
        self._made.pop(workload.key, None)

    async def write(self, workload: Workload, actions: Sequence[RevisionAction]) -> None:
        """Carry out writes of revisions one after the other; the first failure ends it."""
        pause = 0.0
        try:
            if await self._sees_all(workload):
                for action in actions:
                    await self._write(workload, action)
        except MayNotWrite:
            pass
        except KubeError as error:
            pause = _PAUSE
            self._teller.revision_refused(workload, error)
        finally:
            workload.revising = False
            workload.replan = True
            self._again(workload.key, self._clock.now() + pause)

    async def _sees_all(self, workload: Workload) -> bool:
        """Whether the cache has every revision; else it has them now, and the choice is another.

        The watch of DaemonSets may be ahead of that of revisions, and a number is given only once.
        """
        scope = selected_by(workload.ds)
        if scope is None:
            return True
        seen = dict(self._cache.by("owner", workload.key))
        for revision in await self._client.read_all(REVISIONS, _decoder.one, scope=scope):
            self._cache.upsert(revision)
        return seen == self._cache.by("owner", workload.key)

    async def _write(self, workload: Workload, action: RevisionAction) -> None:
        request = revision_request(action, workload.ds.namespace)
        try:
            if isinstance(action, DeleteRevision):
                await self._client.write(request, bytes)
                self._drop(workload, action)
            else:
                self._cache.upsert(await self._client.write(request, _decoder.one))
                if isinstance(action, CreateRevision):
                    self._note_made(workload, action.name)
        except NotFound:
            if isinstance(action, DeleteRevision):
                self._drop(workload, action)
                return
            raise
        except AlreadyExists:
            assert isinstance(action, CreateRevision)
            await self._meet_holder(workload, action)

    def _note_made(self, workload: Workload, name: str) -> None:
        now, made = self._clock.now(), self._made.get(workload.key)
        # One that lasted has nothing to do with how the one before it was lost.
        lost = made is not None and made.name == name and now < made.again_at + _LONGEST_DELAY
        times = made.times + 1 if made is not None and lost else 1
        delay = min(_FIRST_DELAY * 2.0 ** min(times - 2, 20), _LONGEST_DELAY) if times > 1 else 0.0
        self._made[workload.key] = _Made(name, times, now + delay)

    async def _meet_holder(self, workload: Workload, action: CreateRevision) -> None:
        """The name is taken: ours not seen yet, or somebody else's."""
        request = verbs.get(REVISIONS, action.name, namespace=workload.ds.namespace)
        holder = await self._client.read(request, _decoder.one)
        controller = holder.metadata.controller
        if controller is not None and controller.uid == workload.key:
            self._cache.upsert(holder)
        else:
            known = self._taken.get(workload.key, frozenset())
            self._taken[workload.key] = known | {action.name}

    def _drop(self, workload: Workload, action: DeleteRevision) -> None:
        held = self._cache.get(f"{workload.ds.namespace}/{action.name}")
        if held is not None and held.metadata.uid == action.uid:
            self._cache.delete(held)
