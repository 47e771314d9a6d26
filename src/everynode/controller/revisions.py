"""RevisionHistory: writes ControllerRevisions. The target is stored before any pod has its hash."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Final

from everynode.api.daemonset import FieldError
from everynode.api.decode import DecodeError, read_key_and_uid, require_identity
from everynode.api.objects import ControllerRevision
from everynode.backoff import Backoff
from everynode.clock import Clock
from everynode.controller.reporter import Reporter
from everynode.controller.requests import revision_request, selected_by
from everynode.controller.retries import Failures, RecreateBackoff, note_created
from everynode.controller.scheduling import ReconcileQueue
from everynode.controller.state import DaemonSetState
from everynode.decide.actions import CreateRevision, DeleteRevision, RevisionAction
from everynode.decide.revisions.completion import completion_note
from everynode.decide.revisions.ownership import is_owner
from everynode.decide.revisions.target import (
    Revision,
    TargetChoice,
    TemplateDefaults,
    choose_target,
    no_extra_defaults,
    prune_history,
    read_revision,
    read_without_template,
)
from everynode.kube import verbs
from everynode.kube.client import Client, NotLeader
from everynode.kube.errors import AlreadyExists, Denied, Forbidden, Invalid, KubeError, NotFound
from everynode.kube.resources import REVISIONS
from everynode.kube.watch.cache import Cache
from everynode.kube.watch.decode import Decoder

_RETRY_SECONDS: Final = 2.0  # after an error; a change in the watch causes a reconcile sooner
_BACKOFF: Final = Backoff(first=1.0, longest=300.0)  # refused, or vanished more than once
_decode: Final = require_identity(Decoder(ControllerRevision).one, uid=False)


class RevisionHistory:
    """The revisions of all DaemonSets."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        cache: Cache[ControllerRevision],
        queue: ReconcileQueue,
        reporter: Reporter,
        extra_defaults: TemplateDefaults = no_extra_defaults,
    ) -> None:
        self._client = client
        self._clock = clock
        self._cache = cache
        self._queue = queue
        self._reporter = reporter
        self.extra_defaults: Final = extra_defaults  # set on templates before they are compared
        # All by the key of a DaemonSet:
        self._taken: dict[str, frozenset[str]] = {}  # names that other owners' revisions have
        self._created: dict[str, RecreateBackoff] = {}
        self._refused: dict[str, tuple[str, Failures]] = {}  # the name refused last

    def revisions(self, state: DaemonSetState) -> tuple[list[Revision], list[FieldError]]:
        """Return the stored revisions, and the errors of those that cannot be decoded."""
        found: list[Revision] = []
        faults: list[FieldError] = []
        for stored in self._cache.by("owner", state.owner_key).values():
            revision = read_revision(stored, state.key)
            if isinstance(revision, FieldError):
                faults.append(revision)
            else:
                found.append(revision)
        return found, faults

    def choose(self, state: DaemonSetState) -> TargetChoice:
        """The target revision, and the writes that are needed before it can be used."""
        revisions, faults = self.revisions(state)
        return choose_target(
            state.ds,
            revisions,
            state.revision_counts,
            taken=self._taken.get(state.key, frozenset()),
            unreadable=self._unreadable(state, revisions) if faults else (),
            extra_defaults=self.extra_defaults,
        )

    def _unreadable(self, state: DaemonSetState, readable: Sequence[Revision]) -> list[Revision]:
        known = {each.uid for each in readable}
        owned = self._cache.by("owner", state.owner_key).values()
        return [read_without_template(e, state.key) for e in owned if e.metadata.uid not in known]

    def unneeded(self, state: DaemonSetState, target: Revision) -> tuple[DeleteRevision, ...]:
        """The revisions beyond revisionHistoryLimit that no pod has."""
        owned = self._cache.by("owner", state.owner_key)
        if len(owned) <= state.ds.history_limit + 1:
            return ()
        revisions, _ = self.revisions(state)
        return prune_history(state.ds, revisions, state.revision_counts, target=target)

    def note_of_completion(
        self, state: DaemonSetState, target: Revision
    ) -> tuple[RevisionAction, ...]:
        """The note that the target is complete, if its revision lacks it."""
        note = completion_note(state.ds, target)
        return () if note is None else (note,)

    def due_at(self, state: DaemonSetState, actions: Sequence[RevisionAction]) -> float:
        """Return when these writes may begin, 0 for now.

        Refused writes back off, and so do creates of a revision that vanishes again.
        """
        times = [0.0]
        created, refused = self._created.get(state.key), self._refused.get(state.key)
        if created is not None:
            creates = (each for each in actions if isinstance(each, CreateRevision))
            times += [created.retry_at for each in creates if each.name == created.name]
        if refused is not None:
            name, failures = refused
            times += [failures.retry_at for each in actions if each.name == name]
        # At most the longest pause from now: our clock may have been set back since.
        return min(max(times), self._clock.now() + _BACKOFF.longest)

    def forget(self, state: DaemonSetState) -> None:
        """The DaemonSet is gone."""
        self._taken.pop(state.key, None)
        self._created.pop(state.key, None)
        self._refused.pop(state.key, None)

    def write(
        self, state: DaemonSetState, actions: Sequence[RevisionAction]
    ) -> Coroutine[None, None, None]:
        """Write revisions one after the other, up to the first failure.

        No plan is made from now on until the returned coroutine is done.
        """
        state.revision_write_started()
        return self._write_all(state, actions)

    async def _write_all(self, state: DaemonSetState, actions: Sequence[RevisionAction]) -> None:
        retry_at = 0.0
        action = actions[0]
        try:
            if await self._cache_is_current(state):
                for action in actions:
                    await self._write(state, action)
                self._refused.pop(state.key, None)
        except NotLeader:
            retry_at = self._clock.now() + _RETRY_SECONDS  # if we still lead then
        except KubeError as error:
            retry_at = self._clock.now() + _RETRY_SECONDS
            if isinstance(error, Denied | Forbidden | Invalid):
                retry_at = self._note_refused(state, action.name)
            self._reporter.revision_write_failed(state, error)
        finally:
            state.revision_write_finished()
            self._queue.add_at(state.key, max(self._clock.now(), retry_at))

    async def _cache_is_current(self, state: DaemonSetState) -> bool:
        """List the revisions and return whether the cache had them all; if not, it has them now.

        The watch of revisions may be behind that of DaemonSets, or broken. A revision number must
        not be given twice, and a revision that is gone must not become the target.
        """
        options = selected_by(state.ds)
        if options is None:
            return True
        seen = dict(self._cache.by("owner", state.owner_key))
        listed = await self._client.read_all(REVISIONS, _decode, options=options)
        for revision in listed:
            self._cache.upsert(revision)
        uids = {each.metadata.uid for each in listed}
        for cached in seen.values():
            if cached.metadata.uid not in uids and await self._is_gone(cached):
                self._cache.delete(cached)
        return seen == self._cache.by("owner", state.owner_key)

    async def _is_gone(self, cached: ControllerRevision) -> bool:
        """Whether a revision that was not listed is gone; it may only have lost its labels."""
        meta = cached.metadata
        try:
            await self._client.read(
                verbs.get(REVISIONS, meta.name, namespace=meta.namespace), bytes
            )
        except NotFound:
            return True
        return False

    async def _write(self, state: DaemonSetState, action: RevisionAction) -> None:
        request = revision_request(action, state.ds.namespace)
        try:
            if isinstance(action, DeleteRevision):
                await self._client.write(request, bytes)
                self._drop(state, action)
            else:
                self._cache.upsert(await self._client.write(request, _decode))
                if isinstance(action, CreateRevision):
                    self._note_created(state, action.name)
        except NotFound:
            if isinstance(action, DeleteRevision):
                self._drop(state, action)
                return
            raise
        except AlreadyExists:
            assert isinstance(action, CreateRevision)
            await self._resolve_name_conflict(state, action)

    def _note_refused(self, state: DaemonSetState, name: str) -> float:
        before, failures = self._refused.get(state.key, ("", Failures()))
        if before != name:
            failures = Failures()
        failures.add(self._clock.now(), _BACKOFF)
        self._refused[state.key] = name, failures
        return failures.retry_at

    def _note_created(self, state: DaemonSetState, name: str) -> None:
        self._created[state.key] = note_created(
            self._created.get(state.key),
            name,
            self._clock.now(),
            backoff=_BACKOFF,
            lasting=_BACKOFF.longest,
        )

    async def _resolve_name_conflict(self, state: DaemonSetState, action: CreateRevision) -> None:
        """A revision has this name: our own that the cache lacks, or one of another owner."""
        request = verbs.get(REVISIONS, action.name, namespace=state.ds.namespace)
        holder = await self._client.read(request, _decode_holder)
        controller = holder.metadata.controller if holder is not None else None
        if holder is not None and controller is not None and is_owner(state.ds, controller):
            self._cache.upsert(holder)
        else:
            known = self._taken.get(state.key, frozenset())
            self._taken[state.key] = known | {action.name}

    def _drop(self, state: DaemonSetState, action: DeleteRevision) -> None:
        held = self._cache.get(f"{state.ds.namespace}/{action.name}")
        if held is not None and held.metadata.uid == action.uid:
            self._cache.delete(held)


def _decode_holder(body: bytes) -> ControllerRevision | None:
    """Decode the revision that holds a name; None where it cannot be decoded.

    The new revision then gets another name.
    """
    try:
        return _decode(body)
    except DecodeError:
        if not read_key_and_uid(body)[0]:
            raise  # not an object: the error page of a proxy, for instance
        return None
