from __future__ import annotations

from math import inf

import msgspec
import pytest

from everynode.api import keys
from everynode.api.daemonset import DaemonSet
from everynode.api.objects import Pod
from everynode.sim.checks.possible_views import by_controller
from everynode.sim.checks.status_recount import (
    CurrentCounts,
    KnowledgeTooOld,
    NodeShare,
    Recount,
    WriterKnowledge,
)
from everynode.sim.engine.clock import EPOCH
from everynode.sim.engine.loop import SimLoop
from everynode.sim.history.record import Commit, RecordedRequest
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan, Timing
from everynode.sim.plans.scenarios import SCENARIOS
from everynode.sim.world import World, play

BUSY = (
    Action("set-image", at=20.0, args={"image": "agent:v2"}),
    Action("delete-pod", at=24.0, args={"node": 1}),
    Action("lose-node", at=25.0, seconds=60.0, args={"node": 2}),
    Action("add-node", at=30.0, args={"node": "late"}),
    Action("set-image", at=40.0, args={"image": "agent:v3"}),
)


def _plan(min_ready: int = 0, actions: tuple[Action, ...] = BUSY) -> Plan:
    made = daemonset(rolling={"maxUnavailable": 2}, min_ready=min_ready)
    timing = Timing(stop=2.0)
    return Plan(7, nodes=6, manifests=(made,), timing=timing, actions=actions, quiet_at=130.0)


@pytest.mark.parametrize("min_ready", [0, 7])
def test_shares_that_follow_are_those_that_are_made_anew(min_ready: int) -> None:
    plan = _plan(min_ready)
    loop = SimLoop(plan.seed)
    world = World(loop, plan)
    kept: dict[bytes, CurrentCounts] = {}
    seen = set()

    def compare(commit: Commit) -> None:
        for ds in world.record.cluster.sets.values():
            if commit.kind.startswith("daemonsets") and by_controller(commit):
                shares = kept.setdefault(ds.template, CurrentCounts(world.record, ds))
                shares.follow()
                anew = CurrentCounts(world.record, ds)
                for at in (-inf, world.clock.now(), inf):
                    counted_nodes = shares.sums(at, lambda mark: mark[0] < "8")
                    assert counted_nodes == anew.sums(at, lambda mark: mark[0] < "8")
                    seen.add(counted_nodes)

    world.record.on_commit.append(compare)
    result = loop.run_until_complete(world.run())
    loop.close()
    assert result.kept, result.violations
    assert len(seen) > 10


@pytest.fixture(scope="module")
def world() -> World:
    """A settled world with three pods."""
    quiet = Plan(1, nodes=3, manifests=(daemonset(min_ready=5),), quiet_at=20.0)
    return play(quiet)[1]


@pytest.fixture
def ds(world: World) -> DaemonSet:
    return next(iter(world.record.cluster.sets.values()))


@pytest.fixture
def pod(world: World) -> Pod:
    return next(iter(world.record.cluster.pods.values()))


def _changed(pod: Pod, **meta: object) -> Pod:
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, **meta))


def _share(world: World, ds: DaemonSet, *pods: Pod) -> NodeShare:
    node = next(iter(world.record.cluster.nodes.values()))
    return CurrentCounts(world.record, ds).of(node, pods)


def test_a_pod_is_available_min_ready_seconds_after_it_became_ready(
    world: World, ds: DaemonSet, pod: Pod
) -> None:
    share = _share(world, ds, pod)
    ready = pod.condition(keys.READY)
    assert ready is not None
    assert ready.last_transition_time is not None
    assert share.ready
    assert share.up_from == ready.last_transition_time.timestamp() + 5


def test_a_pod_that_is_being_stopped_is_current_and_not_available(
    world: World, ds: DaemonSet, pod: Pod
) -> None:
    leaving = _changed(pod, deletion_timestamp=pod.metadata.creation_timestamp)
    share = _share(world, ds, leaving)
    assert (share.held, share.up_from) == (True, inf)


def test_pods_of_others_count_nowhere(world: World, ds: DaemonSet, pod: Pod) -> None:
    owner = pod.metadata.controller
    assert owner is not None
    theirs = _changed(pod, owner_references=(msgspec.structs.replace(owner, uid="another"),))
    assert _share(world, ds, theirs) == NodeShare(wanted=True)
    assert _share(world, ds, _changed(pod, owner_references=())) == NodeShare(wanted=True)


def test_a_pod_without_its_label_counts_nowhere(world: World, ds: DaemonSet, pod: Pod) -> None:
    assert _share(world, ds, _changed(pod, labels={})) == NodeShare(wanted=True)


def test_the_oldest_pod_stands_for_its_node(world: World, ds: DaemonSet, pod: Pod) -> None:
    labels = {**pod.metadata.labels, keys.REVISION_HASH: "next"}
    newer = _changed(pod, uid="newer", name="zzz", labels=labels)
    assert _share(world, ds, newer, pod) == _share(world, ds, pod)


def _commit(world: World, floor: int, sent_at: float) -> Commit:
    """The last status commit, as if its writer had seen everything up to a version."""
    last = next(each for each in reversed(world.record.commits) if "daemonsets" in each.kind)
    assert last.cause is not None
    known_versions = dict.fromkeys(("pods", "nodes", "controllerrevisions.apps"), floor)
    cause: RecordedRequest = msgspec.structs.replace(
        last.cause, known_versions=known_versions, sent_at=sent_at
    )
    return msgspec.structs.replace(last, cause=cause)


def _fault(world: World, ds: DaemonSet, said: tuple[int, ...], *, floor: int, at: float) -> str:
    shares = CurrentCounts(world.record, ds)
    mark = (ds.status.update_revision, "")
    past = WriterKnowledge(world.record, _commit(world, floor, at))
    return Recount(shares, past, until=EPOCH + at, target=mark).fault(said)


def test_a_writer_that_knew_nothing_may_have_counted_nothing(world: World, ds: DaemonSet) -> None:
    nothing, everything = (3, 0, 0, 0, 0, 0), (3, 3, 0, 3, 3, 3)
    first = next(iter(world.record.created.values())).version - 1
    assert _fault(world, ds, everything, floor=first, at=60.0) == ""
    assert _fault(world, ds, nothing, floor=first, at=60.0) == ""
    last = world.record.commits[-1].version
    assert "0 nodes are current in the status, it is 3" in _fault(
        world, ds, nothing, floor=last, at=60.0
    )


def test_counts_that_were_never_true_together_are_noticed(world: World, ds: DaemonSet) -> None:
    first = next(iter(world.record.created.values())).version - 1
    # Each count alone is possible, but together they are not: a Ready pod is also current.
    assert "never true together" in _fault(world, ds, (3, 1, 0, 2, 1, 1), floor=first, at=60.0)


def test_no_writer_knows_what_was_written_after_the_status_was_sent(
    world: World, ds: DaemonSet
) -> None:
    first = next(iter(world.record.created.values()))
    everything = (3, 3, 0, 3, 3, 3)
    shown = _fault(world, ds, (3, 3, 0, 3, 3, 2), floor=first.version - 1, at=first.time - 0.001)
    assert "3 nodes are current in the status, it is 0" in shown
    assert _fault(world, ds, everything, floor=first.version - 1, at=60.0) == ""


def test_a_writer_that_may_have_known_too_little_is_not_blamed(
    world: World, ds: DaemonSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("everynode.sim.checks.status_recount._MAX_COMMITS", 3)
    with pytest.raises(KnowledgeTooOld):
        _fault(world, ds, (9, 9, 9, 9, 9, 9), floor=0, at=60.0)


def test_availability_goes_by_the_writers_clock(world: World, ds: DaemonSet, pod: Pod) -> None:
    up_from = _share(world, ds, pod).up_from - EPOCH
    last = world.record.commits[-1].version
    early = _fault(world, ds, (3, 3, 0, 3, 3, 3), floor=last, at=up_from - 3.0)
    assert early == "3 nodes are available in the status, it is 0"


def test_a_resize_that_restarts_nothing_counts_from_when_it_was_asked_for() -> None:
    resize = SCENARIOS["in-place-resize"].plan
    manifest = {**resize.manifests[0]}
    manifest["spec"] = {**manifest["spec"], "minReadySeconds": 20}
    containers = manifest["spec"]["template"]["spec"]["containers"]
    more = {"cpu": "200m", "memory": "64Mi"}
    change = [{**containers[0], "resources": {"requests": more, "limits": more}}]
    spec = {"template": {"spec": {"containers": change}}}
    plan = msgspec.structs.replace(
        resize,
        manifests=(manifest,),
        actions=(Action("apply", at=40.0, args={"spec": spec}),),
        quiet_at=160.0,
    )
    result, _ = play(plan)
    assert result.kept, result.violations
