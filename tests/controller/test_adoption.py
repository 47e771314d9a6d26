"""Orphans are found and adopted; refused adoptions are retried with a back-off."""

from __future__ import annotations

from math import inf

import msgspec
import pytest

from everynode.api.daemonset import Flavour
from everynode.controller import orphan_watches
from everynode.controller.adoption import Adoption
from everynode.controller.informers import Informers
from everynode.controller.reporter import Reporter
from everynode.controller.scheduling import ReconcileQueue
from everynode.controller.state import DaemonSetState
from everynode.decide.actions import PodAction
from everynode.kube.client import Client
from everynode.kube.errors import KubeError
from everynode.kube.requests import Request, Response
from everynode.sim.history.record import Commit
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan
from everynode.sim.world import play
from tests.support.samples import native, pod_json, template_with
from tests.support.scripted_server import ManualClock, failure
from tests.support.transports import WithoutWatches

NAME, NODE = pod_json()["metadata"]["name"], pod_json()["spec"]["nodeName"]
ORPHAN = pod_json()["metadata"]["uid"]
MANIFESTS = (daemonset(rolling={"maxUnavailable": 1}),)
# Once it is updated, the pod is not where a create would collide with it.
UPDATE = Action("set-image", at=10.0, args={"image": "agent:v2"})


def _bare_pod(*others: Action) -> float:
    """When a pod that loses its owner and its hash at 40 s is adopted."""
    orphan = Action("orphan-pod", at=40.0, args={"node": 0, "strip": True})
    actions = (UPDATE, *others, orphan)
    result, world = play(Plan(1, nodes=2, manifests=MANIFESTS, actions=actions, quiet_at=1000.0))
    assert result.kept, result.violations
    assert len(world.record.cluster.pods) == 2
    assert all(pod.hash for pod in world.record.cluster.pods.values())
    return next(
        commit.time
        for commit in world.record.commits
        if commit.kind == "pods" and commit.time > 40.0 and _adopts(commit)
    )


def _adopts(commit: Commit) -> bool:
    before, after = commit.before, commit.after
    if before is None or after is None:
        return False
    return before.metadata.controller is None and after.metadata.controller is not None


def test_an_orphan_without_a_hash_is_adopted_at_once() -> None:
    assert _bare_pod() < 42.0


def test_an_orphan_that_no_watch_shows_is_found_within_a_quarter_of_an_hour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(orphan_watches, "MAX_WATCHED", 0)
    assert 600.0 < _bare_pod() < 1000.0


class Refusing(WithoutWatches):
    """A server with one orphan that does not let it be adopted."""

    def __init__(self, refusal: Response) -> None:
        orphan = pod_json("aaa")
        orphan["metadata"] |= {"namespace": "system", "ownerReferences": []}
        self._orphan = orphan
        self.refusal: Response | None = refusal

    async def send(self, request: Request) -> Response:
        if request.method == "PATCH":
            return self.refusal or Response(200, msgspec.json.encode(self._orphan))
        if request.path.endswith("/daemonsets/agent"):
            live = {"metadata": {"name": "agent", "namespace": "system", "uid": "ds-uid"}}
            return Response(200, msgspec.json.encode({**live, "spec": {"template": {}}}))
        items = [self._orphan] if request.path.endswith("/pods") else []
        return Response(200, msgspec.json.encode({"metadata": {}, "items": items}))


class Notebook(Reporter):
    def __init__(self) -> None:
        self.refused: list[tuple[str, str, str]] = []
        self.written: list[PodAction] = []

    def pod_written(self, state: DaemonSetState, action: PodAction) -> None:
        self.written.append(action)

    def adoption_failed(
        self, state: DaemonSetState, error: KubeError, *, pod: str = "", node: str = ""
    ) -> None:
        self.refused.append((pod, node, error.message))


class Stand:
    def __init__(self, refusal: Response) -> None:
        self.clock = ManualClock()
        self.server = Refusing(refusal)
        self.notebook = Notebook()
        self.state = DaemonSetState(native(template_with()), {})
        self.adoption = Adoption(
            Client(self.server, self.clock),
            self.clock,
            informers=Informers([Flavour.NATIVE]),
            queue=ReconcileQueue(self.clock),
            reporter=self.notebook,
        )

    async def scan(self) -> float:
        """Look for orphans, and return how long the next look has to wait."""
        assert self.adoption.due(self.state, self.clock.now())
        await self.adoption.scan(self.state)
        return self.adoption.next_scan(self.state) - self.clock.now()


DENIED = failure(403, "Forbidden", 'pods "x" is forbidden: denied by policy')
AWAY = failure(503, "ServiceUnavailable", "etcd is away")


@pytest.mark.parametrize(
    ("refusal", "waits"),
    [
        (DENIED, [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 300.0, 300.0]),
        (AWAY, [2.0, 4.0, 8.0, 16.0, 16.0]),
    ],
    ids=["denied", "away"],
)
async def test_what_may_not_be_adopted_is_asked_for_later_and_later(
    refusal: Response, waits: list[float]
) -> None:
    stand = Stand(refusal)
    for wait in waits:
        assert await stand.scan() == wait
        # The orphan changes all the time; that is no reason to ask sooner.
        stand.adoption.request_scan(stand.state, ORPHAN)
        assert not stand.adoption.due(stand.state, stand.clock.now() + wait - 0.1)
        # Only a refusal of the server ends the wait for the other nodes.
        assert stand.adoption.done(stand.state) is (refusal is DENIED)
        await stand.clock.advance(wait)
    assert len(stand.notebook.refused) == len(waits)
    assert stand.notebook.written == []


async def test_after_an_adoption_the_next_refusal_is_a_first_one() -> None:
    stand = Stand(DENIED)
    await stand.clock.advance(await stand.scan())
    refusal, stand.server.refusal = stand.server.refusal, None
    assert await stand.scan() >= 600.0
    assert len(stand.notebook.written) == 1
    stand.server.refusal = refusal
    stand.adoption.request_scan(stand.state, ORPHAN)
    assert await stand.scan() == 2.0


async def test_the_node_of_an_orphan_that_may_not_be_adopted_is_left_alone_and_named() -> None:
    stand = Stand(DENIED)
    await stand.scan()
    view = stand.state.view(NODE)
    assert view.retry_at == inf
    assert view.trouble.startswith(f"pod {NAME} cannot be adopted or released: pods")
    assert stand.state.view("another").retry_at == 0.0
    [trouble] = stand.state.troubles
    assert str(trouble).startswith(f"orphans: cannot be adopted or released: {NAME} on node {NODE}")
    assert [(pod, node) for pod, node, _ in stand.notebook.refused] == [(NAME, NODE)]


async def test_a_node_is_served_again_once_its_orphan_is_adopted() -> None:
    stand = Stand(DENIED)
    await stand.clock.advance(await stand.scan())
    stand.server.refusal = None
    await stand.scan()
    assert stand.state.view(NODE).retry_at == 0.0
    assert stand.state.troubles == ()


async def test_another_orphan_is_adopted_at_once_although_one_is_refused() -> None:
    stand = Stand(DENIED)
    assert await stand.scan() == 2.0
    stand.adoption.request_scan(stand.state, "another")
    assert stand.adoption.due(stand.state, stand.clock.now())


def test_one_orphan_that_may_not_be_adopted_does_not_stop_its_set() -> None:
    denied = Action("deny-adoption", at=19.0, seconds=120.0)
    orphan = Action("orphan-pod", at=20.0, args={"node": 0})
    dead = Action("delete-pod", at=30.0, args={"node": 1})
    plan = Plan(1, nodes=3, manifests=MANIFESTS, actions=(denied, orphan, dead), quiet_at=200.0)
    result, world = play(plan)
    assert result.kept, result.violations
    created = [
        commit.time
        for commit in world.record.commits
        if commit.kind == "pods" and commit.before is None
    ]
    assert len(created) == 4  # one each, one for the deleted pod, none beside the orphan
    assert 30.0 < created[-1] < 60.0
    said = [
        condition
        for commit in world.record.commits
        if commit.kind.startswith("daemonsets") and commit.after is not None
        for condition in commit.after.status.conditions
        if (condition.type, condition.status) == ("Faulty", "True")
    ]
    assert said
    assert said[0].reason == "Refused"
    assert "on node node-0001:" in said[0].message
