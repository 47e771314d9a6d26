from __future__ import annotations

import asyncio

import msgspec
import pytest

from everynode.api.daemonset import DaemonSetStatus
from everynode.controller.dry_run import DryRuns, dry_run_request
from everynode.controller.reporter import Reporter
from everynode.controller.scheduling import ReconcileQueue
from everynode.controller.state import DaemonSetState
from everynode.decide.fleet.verification import NO_VERDICT, Verdict, Verification
from everynode.decide.ledger import Ledger
from everynode.kube.client import Client
from everynode.kube.requests import Request, Response
from everynode.kube.transport import TransportError
from tests.support.fleet import NEW, NOW, OLD, make, pod, see
from tests.support.scripted_server import ManualClock
from tests.support.transports import WithoutWatches

ACCEPTED = Response(201, b"{}")
FULL = "exceeded quota: few, requested: pods=1, used: pods=3, limited: pods=3"
LOWERED = "exceeded quota: few, requested: pods=1, used: pods=9, limited: pods=3"


def _status(code: int, message: str, reason: str = "") -> Response:
    body = {"kind": "Status", "code": code, "message": message, "reason": reason}
    return Response(code, msgspec.json.encode(body))


class Scripted(WithoutWatches):
    """A server that sends the given response; None is a broken connection."""

    def __init__(self, *answers: Response | None) -> None:
        self.answers = list(answers)
        self.asked: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.asked.append(request)
        answer = self.answers.pop(0)
        if answer is None:
            raise TransportError("connection reset", sent=True)
        return answer


class Refusals(Reporter):
    def __init__(self) -> None:
        self.words: list[str] = []

    def target_refused(self, state: DaemonSetState, refusal: str) -> None:
        self.words.append(refusal)


class Stand:
    """A DaemonSet whose first pod waits for the verdict on its target."""

    def __init__(self, *answers: Response | None) -> None:
        self.clock = ManualClock()
        self.server = Scripted(*answers)
        self.queue = ReconcileQueue(self.clock)
        self.refusals = Refusals()
        plan = make()
        self.state = DaemonSetState(plan.ds, {})
        self.dry_runs = DryRuns(
            Client(self.server, self.clock), self.clock, queue=self.queue, reporter=self.refusals
        )
        ledger = Ledger(plan, [see("n1", pod(OLD, on="n1"))])
        wanted = ledger.decide(NOW, DaemonSetStatus(), verdict=NO_VERDICT).verification
        assert wanted is not None
        self.wanted = wanted

    async def ask(self) -> Verdict:
        await self.dry_runs.start(self.state, self.wanted)
        return self.state.verdict


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (ACCEPTED, Verdict(NEW)),
        (_status(409, 'pods "a" already exists', "AlreadyExists"), Verdict(NEW)),
        (
            _status(400, 'admission webhook "old.example.com" does not support dry run'),
            Verdict(NEW),
        ),
        (_status(403, f'pods "a" is forbidden: {FULL}'), Verdict(NEW)),
        (_status(422, "spec.containers[0].image: Required value"), None),
        (_status(403, 'pods "a" is forbidden: no PriorityClass with name x was found'), None),
        (_status(403, f'pods "a" is forbidden: {LOWERED}'), None),
        (_status(403, 'admission webhook "policy" denied the request: not today'), None),
        (_status(500, 'Internal error occurred: failed calling webhook "policy"'), None),
        (_status(403, 'User "x" cannot create resource "pods" in API group ""'), None),
        (None, NO_VERDICT),
        (_status(409, "Operation cannot be fulfilled on resourcequotas", "Conflict"), NO_VERDICT),
        (_status(429, "slow down"), NO_VERDICT),
        (_status(503, "etcd is away"), NO_VERDICT),
        (_status(500, "etcd did not answer"), NO_VERDICT),
        (_status(504, "timeout"), NO_VERDICT),
        (_status(401, "Unauthorized"), NO_VERDICT),
    ],
)
async def test_what_an_answer_means(answer: Response | None, verdict: Verdict | None) -> None:
    stand = Stand(answer)
    found = await stand.ask()
    if verdict is None:  # refused, in the words of the server
        assert answer is not None
        assert not found.accepts(NEW)
        assert msgspec.json.decode(answer.body)["message"] in found.refusal_of(NEW)
        assert stand.refusals.words == [found.refusal]
    else:
        assert found == verdict
        assert stand.refusals.words == []
    assert len(stand.queue) == 1  # decided again


async def test_a_quota_without_room_says_what_to_do() -> None:
    found = await Stand(_status(403, f'pods "a" is forbidden: {LOWERED}')).ask()
    assert found.refusal.endswith("; raise the quota, or lower what the template requests")


async def test_a_refused_dry_run_is_repeated_later_and_later_and_then_accepted() -> None:
    denied = _status(403, 'admission webhook "policy" denied the request: not today')
    stand = Stand(denied, denied, None, ACCEPTED)
    assert stand.dry_runs.due_at(stand.state, stand.wanted) == 0.0
    waits = []
    for _ in range(3):
        await stand.ask()
        due_at = stand.dry_runs.due_at(stand.state, stand.wanted)
        assert due_at is not None
        waits.append(due_at - stand.clock.now())
    assert waits == [1.0, 2.0, 4.0]
    assert stand.state.verdict.refusal  # a broken connection takes no refusal back
    assert (await stand.ask()).accepts(NEW)


async def test_another_target_is_asked_for_at_once() -> None:
    stand = Stand(_status(422, "no"))
    await stand.ask()
    action = msgspec.structs.replace(stand.wanted.action, revision="v3")
    assert stand.dry_runs.due_at(stand.state, Verification(action, None)) == 0.0


async def test_one_dry_run_at_a_time() -> None:
    stand = Stand(ACCEPTED)
    run = asyncio.ensure_future(stand.dry_runs.start(stand.state, stand.wanted))
    assert stand.dry_runs.due_at(stand.state, stand.wanted) is None
    await run
    assert stand.dry_runs.due_at(stand.state, stand.wanted) == 0.0


async def test_waits_stay_when_the_clock_is_set_back_and_end_with_the_daemonset() -> None:
    stand = Stand(_status(422, "no"))
    await stand.ask()
    before = stand.dry_runs.due_at(stand.state, stand.wanted)
    assert before is not None
    stand.dry_runs.clock_set_back(3600.0)
    assert stand.dry_runs.due_at(stand.state, stand.wanted) == before - 3600.0
    stand.dry_runs.forget(stand.state)
    assert stand.dry_runs.due_at(stand.state, stand.wanted) == 0.0


def test_the_request_stores_nothing() -> None:
    request = dry_run_request(Stand().wanted.action, "default")
    assert ("dryRun", "All") in request.query
    assert request.method == "POST"
    assert request.path == "/api/v1/namespaces/default/pods"
