"""Routing of objects: a DaemonSet owns nothing outside its own namespace."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from everynode.api.daemonset import Flavour
from everynode.api.keys import PULL_POD_OWNER, REVISION_HASH
from everynode.api.objects import (
    ControllerRevision,
    Node,
    NodeMeta,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodMeta,
)
from everynode.controller.informers import Effect, Informers
from everynode.controller.revisions import RevisionHistory
from tests.support.samples import native, template_with

SET = native(template_with())
HOME, ELSEWHERE = SET.namespace, "evil"


def owners(*, controls: bool = True) -> tuple[OwnerReference, ...]:
    return (OwnerReference("apps/v1", "DaemonSet", SET.name, SET.uid, controls),)


def a_pod(namespace: str, uid: str = "p", **labels: str) -> Pod:
    meta = PodMeta(
        name=f"agent-{uid}",
        namespace=namespace,
        uid=uid,
        resource_version="1",
        labels={"app": "agent", REVISION_HASH: "aaa", **labels},
        owner_references=owners(controls=PULL_POD_OWNER not in labels),
    )
    return Pod(metadata=meta)


def a_revision(namespace: str) -> ControllerRevision:
    meta = ObjectMeta(
        name="agent-aaa", namespace=namespace, resource_version="1", owner_references=owners()
    )
    return ControllerRevision(
        metadata=meta, revision=1, data=msgspec.Raw(b'{"spec":{"template":{}}}')
    )


class Stand:
    def __init__(self) -> None:
        self.informers = Informers([Flavour.NATIVE])
        self.told: list[Effect] = []
        self.informers.set_handler(self.told.append)
        self.informers.daemonsets[Flavour.NATIVE].upsert(SET)
        self.state = self.informers.states[SET.uid]
        self.state.plan_outdated = False
        self.told.clear()


@pytest.mark.parametrize(("namespace", "own"), [(HOME, True), (ELSEWHERE, False)])
def test_pods_are_owned_in_the_namespace_of_their_set_alone(namespace: str, own: bool) -> None:
    stand = Stand()
    stand.informers.pods.upsert(a_pod(namespace))
    assert bool(stand.state.pods()) is own
    assert bool(stand.state.revision_counts) is own
    assert bool(stand.told) is own
    stand.informers.start_over()
    assert bool(stand.informers.states[SET.uid].pods()) is own


@pytest.mark.parametrize(
    ("since", "known"), [("nothing", True), ("node deleted", False), ("pod created", False)]
)
def test_the_last_pod_of_an_empty_node_is_known_in_the_next_term(since: str, known: bool) -> None:
    stand = Stand()
    node, last = Node(NodeMeta(name="n", uid="1", resource_version="1")), a_pod(HOME)
    last = msgspec.structs.replace(last, spec=msgspec.structs.replace(last.spec, node_name="n"))
    stand.informers.nodes.upsert(node)
    stand.informers.pods.upsert(last)
    stand.informers.pods.delete(last)
    if since == "node deleted":
        stand.informers.nodes.delete(node)
        stand.informers.nodes.upsert(node)
    elif since == "pod created":
        other = msgspec.structs.replace(last.metadata, name="agent-q", uid="q")
        stand.informers.pods.upsert(msgspec.structs.replace(last, metadata=other))
    for _ in range(2):
        stand.informers.start_over()
        view = stand.informers.states[SET.uid].view("n")
        assert (view.last_pod == last) is known


@pytest.mark.parametrize(("namespace", "own"), [(HOME, True), (ELSEWHERE, False)])
def test_revisions_are_owned_in_the_namespace_of_their_set_alone(namespace: str, own: bool) -> None:
    stand = Stand()
    stand.informers.revisions.upsert(a_revision(namespace))
    nothing: Any = None
    history = RevisionHistory(
        nothing, nothing, cache=stand.informers.revisions, queue=nothing, reporter=nothing
    )
    assert (bool(stand.told), stand.state.plan_outdated) == (own, own)
    assert len(history.revisions(stand.state)[0]) == own
    assert history.unneeded(stand.state, history.choose(stand.state).target) == ()


@pytest.mark.parametrize(("namespace", "own"), [(HOME, True), (ELSEWHERE, False)])
def test_pull_pods_are_owned_only_in_the_namespace_of_their_daemonset(
    namespace: str, own: bool
) -> None:
    stand = Stand()
    stand.informers.pull_pods.upsert(a_pod(namespace, **{PULL_POD_OWNER: SET.uid}))
    assert bool(stand.told) is own
    assert len(stand.informers.pull_pods.by("owner", stand.state.owner_key)) == own


def test_a_pod_that_another_namespace_holds_leaves_the_own_one_alone() -> None:
    stand = Stand()
    own, foreign = a_pod(HOME), a_pod(ELSEWHERE, "q")
    stand.informers.pods.upsert(own)
    stand.informers.pods.upsert(foreign)
    stand.informers.pods.delete(foreign)
    assert stand.state.pods() == [own]
