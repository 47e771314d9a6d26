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
from everynode.kube.errors import AlreadyExists, Denied, Forbidden, Invalid, KubeError, NotFound
from everynode.kube.resources import REVISIONS

_PAUSE: Final = 2.0  # after an error; the watch brings us back sooner if something changes
_FIRST_DELAY: Final = 1.0  # after a refusal, or a revision that was lost twice; then it doubles
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


@dataclass(slots=True)
class _Refused:
    """The write that was refused last, and how often in a row."""

    name: str
    times: int
    again_at: float


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
        self._refused: dict[str, _Refused] = {}

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
        that the DaemonSet is gone. We do not race with them. What was refused is asked for again
        later and later.
        """
        times = [0.0]
        made, refused = self._made.get(workload.key), self._refused.get(workload.key)
        if made is not None:
            created = (each for each in actions if isinstance(each, CreateRevision))
            times += [made.again_at for each in created if each.name == made.name]
        if refused is not None:
            times += [refused.again_at for each in actions if each.name == refused.name]
        return max(times)

    def forget(self, workload: Workload) -> None:
        """The DaemonSet is gone."""
        self._taken.pop(workload.key, None)
        self._made.pop(workload.key, None)
        self._refused.pop(workload.key, None)

    async def write(self, workload: Workload, actions: Sequence[RevisionAction]) -> None:
        """Carry out writes of revisions one after the other; the first failure ends it."""
        again_at = 0.0
        action = actions[0]
        try:
            if await self._sees_all(workload):
                for action in actions:
                    await self._write(workload, action)
                self._refused.pop(workload.key, None)
        except MayNotWrite:
            again_at = self._clock.now() + _PAUSE  # if we still lead then
        except KubeError as error:
            again_at = self._clock.now() + _PAUSE
            if isinstance(error, Denied | Forbidden | Invalid):
                again_at = self._note_refused(workload, action.name)
            self._teller.revision_refused(workload, error)
        finally:
            workload.revising = False
            workload.replan = True
            self._again(workload.key, max(self._clock.now(), again_at))

    async def _sees_all(self, workload: Workload) -> bool:
        """Whether the cache has what is stored; else it has that now, and the choice is another.

        The watch of DaemonSets may be ahead of that of revisions, which may even be dead. A number
        is given only once, and no target comes from a revision that is gone.
        """
        scope = selected_by(workload.ds)
        if scope is None:
            return True
        seen = dict(self._cache.by("owner", workload.key))
        listed = await self._client.read_all(REVISIONS, _decoder.one, scope=scope)
        for revision in listed:
            self._cache.upsert(revision)
        uids = {each.metadata.uid for each in listed}
        for held in seen.values():
            if held.metadata.uid not in uids and await self._is_gone(held):
                self._cache.delete(held)
        return seen == self._cache.by("owner", workload.key)

    async def _is_gone(self, held: ControllerRevision) -> bool:
        """Whether a revision that was not listed is no more; it may only have lost its labels."""
        meta = held.metadata
        try:
            await self._client.read(
                verbs.get(REVISIONS, meta.name, namespace=meta.namespace), bytes
            )
        except NotFound:
            return True
        return False

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

    def _note_refused(self, workload: Workload, name: str) -> float:
        before = self._refused.get(workload.key)
        times = before.times + 1 if before is not None and before.name == name else 1
        again_at = self._clock.now() + _delay(times)
        self._refused[workload.key] = _Refused(name, times, again_at)
        return again_at

    def _note_made(self, workload: Workload, name: str) -> None:
        now, made = self._clock.now(), self._made.get(workload.key)
        # One that lasted has nothing to do with how the one before it was lost.
        lost = made is not None and made.name == name and now < made.again_at + _LONGEST_DELAY
        times = made.times + 1 if made is not None and lost else 1
        delay = _delay(times - 1) if times > 1 else 0.0
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


def _delay(times: int) -> float:
    return min(_FIRST_DELAY * 2.0 ** min(times - 1, 20), _LONGEST_DELAY)
