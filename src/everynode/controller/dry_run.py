"""DryRuns: asks the API server whether it would accept the pods of a target, before one is taken.

A verdict holds for one target while this process leads; the next one asks again. After a refusal
the dry run is repeated, later and later. An error of the transport is not a verdict.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Final

from everynode.api.keys import FIELD_MANAGER
from everynode.backoff import Backoff
from everynode.clock import Clock
from everynode.controller.reporter import Reporter
from everynode.controller.retries import Failures
from everynode.controller.scheduling import ReconcileQueue
from everynode.controller.state import DaemonSetState
from everynode.decide.actions import CreatePod
from everynode.decide.fleet.verification import Verdict, Verification, has_room_afterwards
from everynode.kube import verbs
from everynode.kube.client import Client, NotLeader
from everynode.kube.errors import (
    AlreadyExists,
    Denied,
    Forbidden,
    Invalid,
    KubeError,
    QuotaExceeded,
)
from everynode.kube.requests import METADATA, Request
from everynode.kube.resources import PODS

_RETRY: Final = Backoff(first=1.0, longest=60.0)
# The API server's words where a webhook declares side effects: it then refuses every dry run.
_NO_DRY_RUN: Final = "does not support dry run"
_RAISE_QUOTA: Final = "raise the quota, or lower what the template requests"


@dataclass(slots=True)
class _TargetDryRuns:
    """The dry runs of one target so far."""

    revision: str
    failures: Failures = field(default_factory=Failures)


class DryRuns:
    """The dry runs of all DaemonSets, at most one at a time each."""

    def __init__(
        self, client: Client, clock: Clock, *, queue: ReconcileQueue, reporter: Reporter
    ) -> None:
        self._client = client
        self._clock = clock
        self._queue = queue
        self._reporter = reporter
        self._runs: dict[str, _TargetDryRuns] = {}  # by DaemonSet

    def forget(self, state: DaemonSetState) -> None:
        """The DaemonSet is gone."""
        self._runs.pop(state.key, None)

    def clock_set_back(self, by: float) -> None:
        """Keep the remaining waits although the wall clock was set back."""
        for runs in self._runs.values():
            runs.failures.clock_set_back(by)

    def due_at(self, state: DaemonSetState, wanted: Verification) -> float | None:
        """Return when the dry run may be started; None while one is under way."""
        if state.verifying:
            return None
        runs = self._runs.get(state.key)
        same = runs is not None and runs.revision == wanted.action.revision
        return runs.failures.retry_at if runs is not None and same else 0.0

    def start(self, state: DaemonSetState, wanted: Verification) -> Coroutine[None, None, None]:
        """Count the dry run as under way, and return it to be run."""
        runs = self._runs.get(state.key)
        if runs is None or runs.revision != wanted.action.revision:
            runs = self._runs[state.key] = _TargetDryRuns(wanted.action.revision)
        state.verifying = True
        return self._run(state, wanted, runs)

    async def _run(self, state: DaemonSetState, wanted: Verification, runs: _TargetDryRuns) -> None:
        try:
            refusal = await self._ask(state, wanted)
        except NotLeader:
            return  # the next term asks again
        finally:
            state.verifying = False
        if refusal is not None:
            state.verdict = Verdict(runs.revision, refusal)
        if refusal:
            self._reporter.target_refused(state, refusal)
        if refusal is None or refusal:
            runs.failures.add(self._clock.now(), _RETRY)
        self._queue.add(state.key)

    async def _ask(self, state: DaemonSetState, wanted: Verification) -> str | None:
        """Return why the pod is refused, empty if it is accepted; None if there is no verdict."""
        try:
            await self._client.write(dry_run_request(wanted.action, state.ds.namespace), bytes)
        except NotLeader:
            raise
        except KubeError as error:
            return refusal_of(error, wanted)
        return ""


def dry_run_request(action: CreatePod, namespace: str) -> Request:
    """Return the request that shows whether the API server would create the pod."""
    return verbs.create(
        PODS,
        action.body,
        namespace=namespace,
        manager=FIELD_MANAGER,
        dry_run=True,
        accept=METADATA,
    )


def refusal_of(error: KubeError, wanted: Verification) -> str | None:
    """Return why a pod is refused, empty if it is accepted; None if that is not known."""
    match error:
        case AlreadyExists():
            return ""  # admission and validation come first
        case QuotaExceeded():
            old = wanted.gives_way
            if old is not None and has_room_afterwards(error.message, old):
                return ""
            return f"{error.message}; {_RAISE_QUOTA}"
        case Denied() if _NO_DRY_RUN in error.message:
            return ""
        case Denied() | Invalid() | Forbidden():
            return error.message
        case _:
            return None
