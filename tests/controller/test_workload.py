from __future__ import annotations

from everynode.api.objects import Node
from everynode.controller.queue import SOON
from everynode.controller.workload import Workload
from everynode.controller.writes import Stage
from everynode.decide.actions import Because, CreatePod, DeletePod
from everynode.decide.ledger import Ledger
from tests.decide.fleet import NEW, OLD, make, node, pod

NOW = 1000.0


def workload(*nodes: str) -> tuple[Workload, dict[str, Node]]:
    known = {name: node(name) for name in nodes}
    plan = make()
    made = Workload(plan.ds, known)
    made.ledger = Ledger(plan)
    made.observe_everything()
    return made, known


def create(on: str = "n1") -> CreatePod:
    return CreatePod(on, NEW, f"agent-{on}", {}, Because.MISSING)


def test_pods_are_known_by_node_and_counted_by_the_revision_they_carry() -> None:
    made, _ = workload("n1", "n2")
    old, new = pod(OLD, on="n1"), pod(NEW, on="n2")
    made.pod_changed(None, old)
    made.pod_changed(None, new)
    assert made.pods_on("n1") == (old,)
    assert dict(made.carried) == {OLD: 1, NEW: 1}
    made.pod_changed(old, None)
    assert dict(made.carried) == {NEW: 1}
    assert made.pods() == [new]


def test_a_view_shows_the_node_its_pods_and_the_write_under_way() -> None:
    made, known = workload("n1")
    old = pod(OLD, on="n1")
    made.pod_changed(None, old)
    made.begin(create(), NOW)
    view = made.view("n1")
    assert (view.node, view.pods, len(view.writes)) == (known["n1"], (old,), 1)


def test_a_refused_write_is_tried_again_later_and_later() -> None:
    made, _ = workload("n1")
    delays = []
    for _ in range(12):
        write = made.begin(create(), NOW)
        made.refused("n1", write, trouble="quota", now=NOW)
        delays.append(made.refusals["n1"].retry_at - NOW)
    assert delays[:3] == [0.5, 1.0, 2.0]
    assert delays[-1] == 300.0
    assert made.view("n1").trouble == "quota"
    assert "n1" not in made.writes


def test_a_conflict_is_tried_again_at_once_and_is_no_trouble() -> None:
    made, _ = workload("n1")
    made.refused("n1", made.begin(create(), NOW), trouble="", now=NOW)
    assert made.refusals["n1"].retry_at == NOW + 0.05
    assert made.view("n1").trouble == ""


def test_creates_start_slowly_double_with_success_and_fall_back_with_a_refusal() -> None:
    made, _ = workload("n1")
    limits = [made.create_limit]
    for version in range(3):
        write = made.begin(create(), NOW)
        made.answered("n1", write, uid="u", version=version, now=NOW)
        limits.append(made.create_limit)
    made.refused("n1", made.begin(create(), NOW), trouble="quota", now=NOW)
    assert [*limits, made.create_limit] == [1, 2, 4, 8, 1]


def test_a_write_that_is_seen_is_forgotten_and_one_that_is_not_stays() -> None:
    made, _ = workload("n1", "n2")
    new = pod(NEW, on="n1")
    for name, uid in (("n1", new.uid), ("n2", "not-seen")):
        made.answered(name, made.begin(create(name), NOW), uid=uid, version=9, now=NOW)
    made.pod_changed(None, new)
    made.refresh(5, NOW + SOON)
    assert list(made.writes) == ["n2"]


def shown(made: Workload, now: float) -> tuple[str, ...]:
    """The uids of the pods on n1 that the ledger goes by after a look at that time."""
    assert made.ledger is not None
    made.refresh(0, now)
    made.ledger.decide(now, made.ds.status)
    return tuple(each.uid for each in made.ledger._views["n1"].pods)


def test_a_new_pod_of_ours_is_looked_at_with_what_else_happens_in_a_moment() -> None:
    made, _ = workload("n1")
    shown(made, NOW)
    made.begin(create(), NOW)
    new = pod(NEW, on="n1", ready=False)
    made.pod_changed(None, new)
    assert (shown(made, NOW), shown(made, NOW + SOON)) == ((), (new.uid,))


def test_a_pod_that_becomes_ready_or_goes_is_looked_at_at_once() -> None:
    made, _ = workload("n1")
    made.begin(create(), NOW)
    made.pod_changed(None, pod(NEW, on="n1", ready=False))
    ready = pod(NEW, on="n1")
    made.pod_changed(pod(NEW, on="n1", ready=False), ready)
    seen = shown(made, NOW)
    made.pod_changed(ready, None)
    assert (seen, shown(made, NOW)) == ((ready.uid,), ())


def test_a_pod_that_fails_is_looked_at_with_the_next_decision() -> None:
    made, _ = workload("n1")
    before, after = pod(OLD, on="n1"), pod(OLD, on="n1", ready=False)
    made.pod_changed(None, before)
    shown(made, NOW)
    made.pod_changed(before, after)
    shown(made, NOW)
    assert made.ledger is not None
    assert made.ledger.sums.available == 0


def test_an_old_pod_that_fails_beside_a_new_one_is_looked_at_with_the_next_decision() -> None:
    made, _ = workload("n1")
    before, after = pod(OLD, on="n1"), pod(OLD, on="n1", ready=False)
    made.pod_changed(None, before)
    made.begin(create(), NOW)
    made.pod_changed(before, after)
    shown(made, NOW)
    assert made.ledger is not None
    assert made.ledger.sums.available == 0


def test_that_a_pod_of_ours_ends_is_no_news_until_it_is_gone() -> None:
    made, _ = workload("n1")
    old, ending = pod(OLD, on="n1"), pod(OLD, on="n1", deleting=NOW)
    made.pod_changed(None, old)
    shown(made, NOW)
    made.begin(DeletePod("n1", old.name, old.uid, "1", Because.UPDATE), NOW)
    made.pod_changed(old, ending)
    shown(made, NOW)
    unseen = list(made.writes)
    made.pod_changed(ending, None)
    assert (unseen, shown(made, NOW), list(made.writes)) == (["n1"], (), [])


def test_writes_that_nobody_saw_are_overdue_after_a_while_and_only_then() -> None:
    made, _ = workload("n1", "n2")
    lost = made.begin(create("n1"), NOW)
    made.lost("n1", lost, now=NOW)
    made.begin(create("n2"), NOW)  # still on its way: its answer will come
    assert made.overdue(NOW + 4) == []
    assert made.overdue(NOW + 6) == [("n1", lost)]
    assert lost.stage is Stage.UNKNOWN


def test_a_write_is_looked_for_again_only_after_as_long_as_before() -> None:
    made, _ = workload("n1")
    lost = made.begin(create("n1"), NOW)
    made.lost("n1", lost, now=NOW)
    assert made.overdue(NOW + 6) == [("n1", lost)]
    assert made.overdue(NOW + 10) == []
    assert made.overdue(NOW + 12) == [("n1", lost)]


def test_many_lost_writes_are_looked_for_a_few_at_a_time() -> None:
    names = [f"n{number:02d}" for number in range(25)]
    made, _ = workload(*names)
    for name in names:
        made.lost(name, made.begin(create(name), NOW), now=NOW)
    found = [[node for node, _ in made.overdue(NOW + 6 + pause)] for pause in (0, 0.1, 1, 2, 3)]
    assert found == [names[:10], [], names[10:20], names[20:], []]


def test_a_node_that_vanished_with_its_pods_is_forgotten() -> None:
    made, known = workload("n1", "n2")
    made.refresh(0, NOW)
    assert made.ledger is not None
    made.ledger.decide(NOW, made.ds.status)
    del known["n2"]
    made.node_changed("n2")
    made.refresh(0, NOW)
    made.ledger.decide(NOW, made.ds.status)
    assert [each.name for each in made.ledger.assessments()] == ["n1"]


def test_a_pod_that_is_gone_again_and_again_is_created_later_and_later() -> None:
    made, _ = workload("n1")
    now, pauses = NOW, []
    for version in range(9):
        made.answered("n1", made.begin(create(), now), uid="u", version=version, now=now)
        pauses.append(max(0.0, made.view("n1").retry_at - now))
        now += pauses[-1] + 0.1
    assert pauses == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_a_pod_that_lasted_is_created_again_at_once() -> None:
    made, _ = workload("n1")
    for now in (NOW, NOW + 60.0, NOW + 120.0):
        made.answered("n1", made.begin(create(), now), uid="u", version=1, now=now)
        assert made.view("n1").retry_at <= now


def test_nothing_is_looked_for_live_once_every_write_is_seen() -> None:
    made, _ = workload("n1")
    write = made.begin(create(), NOW)
    made.answered("n1", write, uid="made", version=7, now=NOW)
    made.refresh(6, NOW + SOON)
    assert made.settle_at is not None
    made.node_changed("n1")
    made.refresh(7, NOW + SOON)
    assert made.settle_at is None
