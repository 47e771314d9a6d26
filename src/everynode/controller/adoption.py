"""Adoption: adopts orphans that the selector matches, releases pods that it no longer matches.

The pod watch shows only pods with a revision hash. Orphans without one are found by a list request:
when a DaemonSet appears and, for such pods only, every 10 to 15 minutes afterwards. Adopting one
gives it the hash that its last in-place update recorded, or an empty one: with the label the watch
shows it, if need be as a pod of no known revision.

Nothing is decided for a DaemonSet that was just found, or for which an orphan was just seen, until
its orphans are adopted and the cache shows it: it would create a second pod on their nodes. If an
orphan cannot be adopted (a policy refuses it), only its node waits, and the condition names it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from everynode.api.decode import require_identity
from everynode.api.keys import POD_TEMPLATE_GENERATION, REVISION_HASH
from everynode.api.objects import ControllerRevision, Pod
from everynode.api.versions import decode_daemonset
from everynode.backoff import Backoff
from everynode.clock import Clock
from everynode.controller.informers import Informers, resource_of
from everynode.controller.reporter import Reporter
from everynode.controller.requests import pod_request, revision_request, selected_by
from everynode.controller.retries import Failures
from everynode.controller.scheduling import ReconcileQueue
from everynode.controller.state import DaemonSetState
from everynode.decide.actions import PatchPod
from everynode.decide.node.reasons import shorten
from everynode.decide.revisions.ownership import (
    Claim,
    adopt_patch,
    adopt_revision_patch,
    claim,
    claim_revision,
    recover_hash,
    release_patch,
    restore_hash_patch,
)
from everynode.kube import verbs
from everynode.kube.client import Client, NotLeader
from everynode.kube.errors import Denied, Forbidden, Invalid, KubeError
from everynode.kube.resources import PODS, REVISIONS
from everynode.kube.watch.cache import Cache, key_of, parse_resource_version
from everynode.kube.watch.decode import Decoder

SCAN_EVERY: Final = 600.0
_RETRY_SECONDS: Final = 2.0
_UNANSWERED: Final = Backoff(first=_RETRY_SECONDS, longest=16.0)  # no response, or a conflict
# Refused until a user changes something.
_REFUSED: Final = Backoff(first=_RETRY_SECONDS, longest=300.0)
_REFUSALS: Final = (Denied, Forbidden, Invalid)
_MAX_NAMED: Final = 3  # pods in a message
_UNSEEN: Final = f"!{REVISION_HASH}"
_decode_pod: Final = require_identity(Decoder(Pod).one)
_decode_revision: Final = require_identity(Decoder(ControllerRevision).one)


@dataclass(slots=True)
class _Claims:
    """How far adoption has come for one DaemonSet."""

    scan_at: float = 0.0
    needed: bool = True  # nothing is decided before the next scan is done
    scanning: bool = False
    # Scans that failed. No scan begins before the retry time, even if an orphan is seen.
    failures: Failures = field(default_factory=Failures)
    # Pods that were refused, by uid, and when they are tried again: a scan for others may begin.
    refused: frozenset[str] = frozenset()
    refusals: Failures = field(default_factory=Failures)
    # Adopted and not in the cache yet: the resourceVersion to be seen, by key.
    pods: dict[str, int] = field(default_factory=dict)
    revisions: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _RefusedPods:
    """The pods that could not be adopted or released in one scan."""

    errors: list[tuple[Pod, KubeError]] = field(default_factory=list)

    @property
    def by_node(self) -> dict[str, str]:
        """Why, by node; a pod that is on no node yet keeps no node from getting one."""
        return {
            pod.node: f"pod {pod.name} cannot be adopted or released: {error.message}"
            for pod, error in self.errors
            if pod.node
        }

    @property
    def summary(self) -> str:
        """All of them in one bounded text; empty if there are none."""
        named = [
            f"{pod.name} on node {pod.node or '(none)'}: {shorten(error.message)}"
            for pod, error in self.errors[:_MAX_NAMED]
        ]
        more = len(self.errors) - len(named)
        text = "; ".join([*named, *([f"and {more} more"] if more else [])])
        return text and f"cannot be adopted or released: {text}"


class Adoption:
    """Adopts and releases pods and revisions for all DaemonSets."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        informers: Informers,
        queue: ReconcileQueue,
        reporter: Reporter,
    ) -> None:
        self._client = client
        self._clock = clock
        self._informers = informers
        self._queue = queue
        self._reporter = reporter
        self._claims: dict[str, _Claims] = {}

    def due(self, state: DaemonSetState, now: float) -> bool:
        """Whether to start a scan for orphans now; if so, it counts as started."""
        claims = self._claims_of(state)
        # A later time than that was set before our clock was set back.
        due_at = max(claims.scan_at, claims.failures.retry_at)
        if claims.scanning or now < due_at <= now + SCAN_EVERY * 1.5:
            return False
        claims.scan_at = now + self._clock.jitter(SCAN_EVERY, SCAN_EVERY * 1.5)
        claims.scanning = True
        return True

    def done(self, state: DaemonSetState) -> bool:
        """Whether the orphans are adopted and the cache shows it, so that nodes can be decided."""
        claims = self._claims[state.key]
        if claims.pods or claims.revisions:
            _drop_seen(claims.pods, self._informers.pods)
            _drop_seen(claims.revisions, self._informers.revisions)
        return not (claims.needed or claims.pods or claims.revisions)

    def next_scan(self, state: DaemonSetState) -> float:
        """When the next scan is due; a scan that is running schedules the reconcile itself."""
        claims = self._claims[state.key]
        if claims.scanning:
            return self._clock.now() + SCAN_EVERY
        return max(claims.scan_at, claims.failures.retry_at)

    def request_scan(self, state: DaemonSetState, uid: str) -> None:
        """Scan before anything else is decided: this orphan was seen, unless it is refused."""
        claims = self._claims_of(state)
        if uid in claims.refused:
            return
        claims.scan_at, claims.needed = 0.0, True

    def _claims_of(self, state: DaemonSetState) -> _Claims:
        claims = self._claims.get(state.key)
        if claims is None:
            claims = self._claims[state.key] = _Claims()
        return claims

    def forget(self, state: DaemonSetState) -> None:
        """The DaemonSet is gone."""
        self._claims.pop(state.key, None)

    async def scan(self, state: DaemonSetState) -> None:
        """Adopt the orphans that the selector matches, release the pods that it no longer does."""
        claims = self._claims.get(state.key)
        if claims is None:
            return  # the DaemonSet was deleted before its scan began
        scan_at = claims.scan_at  # 0 if another scan is requested meanwhile
        refused = _RefusedPods()
        try:
            await self._adopt(state, claims, refused)
            for pod in state.pods():
                if claim(state.ds, pod) is Claim.RELEASE:
                    await self._patch(state, pod, release_patch(state.ds, pod), refused)
            claims.needed = claims.needed and claims.scan_at != scan_at
            self._note_refused(state, claims, refused)
        except NotLeader:
            # If we still lead then.
            claims.scan_at = claims.failures.retry_at = self._clock.now() + _RETRY_SECONDS
        except KubeError as error:
            again = _REFUSED if isinstance(error, _REFUSALS) else _UNANSWERED
            claims.failures.add(self._clock.now(), again)
            claims.scan_at = claims.failures.retry_at
            self._reporter.adoption_failed(state, error)
        finally:
            claims.scanning = False
            self._queue.add(state.key)

    def _note_refused(self, state: DaemonSetState, claims: _Claims, refused: _RefusedPods) -> None:
        """Leave the nodes of pods alone that could not be written; the others are decided."""
        state.orphans_refused(refused.by_node)
        state.set_trouble("orphans", refused.summary)
        claims.failures = Failures()
        claims.refused = frozenset(pod.uid for pod, _ in refused.errors)
        if not refused.errors:
            claims.refusals = Failures()
            return
        claims.refusals.add(self._clock.now(), _REFUSED)
        claims.scan_at = min(claims.scan_at, claims.refusals.retry_at)
        for pod, error in refused.errors[:_MAX_NAMED]:
            self._reporter.adoption_failed(state, error, pod=pod.name, node=pod.node)

    async def _adopt(self, state: DaemonSetState, claims: _Claims, refused: _RefusedPods) -> None:
        ds = state.ds
        options = selected_by(ds)
        if options is None:
            return
        # Pods with the label are in the watch, which requests a scan when it shows an orphan.
        everything = claims.needed or claims.refused
        sought = options if everything else replace(options, labels=f"{options.labels},{_UNSEEN}")
        pods = await self._client.read_all(PODS, _decode_pod, options=sought)
        revisions = await self._client.read_all(REVISIONS, _decode_revision, options=options)
        for pod in pods:
            if claim(ds, pod) is Claim.OWN and REVISION_HASH not in pod.metadata.labels:
                await self._patch(state, pod, restore_hash_patch(pod), refused)
        orphans = [pod for pod in pods if claim(ds, pod) is Claim.ADOPT]
        lost = [each for each in revisions if claim_revision(ds, each) is Claim.ADOPT]
        # A DaemonSet that is being deleted must not adopt: its pods would be deleted with it.
        if not (orphans or lost) or not await self._alive(state):
            return
        for revision in lost:
            action = adopt_revision_patch(ds, revision)
            answer = await self._client.write(
                revision_request(action, ds.namespace), _decode_revision
            )
            claims.revisions[key_of(answer)] = parse_resource_version(
                answer.metadata.resource_version
            )
        for pod in orphans:
            adopted = await self._patch(state, pod, _visible(adopt_patch(ds, pod), pod), refused)
            if adopted is not None:
                version = parse_resource_version(adopted.metadata.resource_version)
                claims.pods[key_of(adopted)] = version

    async def _alive(self, state: DaemonSetState) -> bool:
        resource = resource_of(state.ds.flavour)
        request = verbs.get(resource, state.ds.name, namespace=state.ds.namespace)
        decode = partial(decode_daemonset, flavour=state.ds.flavour)
        live = await self._client.read(request, decode)
        return live.uid == state.key and live.metadata.deletion_timestamp is None

    async def _patch(
        self, state: DaemonSetState, pod: Pod, action: PatchPod, refused: _RefusedPods
    ) -> Pod | None:
        """Write one pod; a refusal is noted and concerns no other pod."""
        request = pod_request(action, state.ds.namespace)
        try:
            answer = await self._client.write(request, _decode_pod)
        except _REFUSALS as error:
            refused.errors.append((pod, error))
            return None
        self._reporter.pod_written(state, action)
        return answer


def _drop_seen(waiting: dict[str, int], cache: Cache[Any]) -> None:
    """Remove the objects that the cache shows, or showed before they were deleted."""
    for key, version in list(waiting.items()):
        cached = cache.get(key)
        known = (
            parse_resource_version(cached.metadata.resource_version)
            if cached is not None
            else cache.version
        )
        if known >= version:
            del waiting[key]


def _visible(patch: PatchPod, pod: Pod) -> PatchPod:
    """Add the label by which the watch selects our pods to the patch that adopts a pod.

    Remove the template generation of the DaemonSet that the pod belonged to before.
    """
    metadata: dict[str, Any] = patch.body["metadata"]
    labels: dict[str, str | None] = metadata.setdefault("labels", {})
    if REVISION_HASH not in pod.metadata.labels:
        labels[REVISION_HASH] = recover_hash(pod)
    if POD_TEMPLATE_GENERATION in pod.metadata.labels:
        labels[POD_TEMPLATE_GENERATION] = None
    return patch
