from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from everynode.api.objects import Pod
from everynode.forecast.forecast import ForecastRequest, record
from everynode.forecast.prepared_manifest import with_previous_images
from everynode.forecast.recording import (
    NodeState,
    Recording,
    RolloutRecorder,
    StateChange,
    state_of,
)
from everynode.kube.watch.decode import Decoder
from everynode.sim.plans.manifests import daemonset

NODES = 6
decode = Decoder(Pod).one


def pod(hash: str, *, terminating: bool = False, preparing: bool = False) -> Pod:
    labels = f'"controller-revision-hash":"{hash}"'
    if preparing:
        labels += ',"lifecycle.apps.kruise.io/state":"PreparingDelete"'
    end = ',"deletionTimestamp":"2026-01-01T00:00:00Z"' if terminating else ""
    return decode(f'{{"metadata":{{"name":"p","labels":{{{labels}}}{end}}}}}'.encode())


@pytest.mark.parametrize(
    ("pods", "available", "state"),
    [
        ([pod("old")], [0], NodeState.OLD),
        ([pod("old")], [], NodeState.UNAVAILABLE),
        ([pod("old", terminating=True)], [], NodeState.TAKEN),
        ([pod("old", preparing=True)], [], NodeState.TAKEN),
        ([], [], NodeState.TAKEN),
        ([pod("old", terminating=True), pod("new")], [], NodeState.STARTING),
        ([pod("old"), pod("new")], [0], NodeState.OLD),
        ([pod("new")], [0], NodeState.UPDATED),
    ],
)
def test_the_state_of_a_node_follows_from_its_pods(
    pods: list[Pod], available: list[int], state: NodeState
) -> None:
    assert state_of(pods, [pods[i] for i in available], lambda hash: hash == "old") is state


def played(**more: Any) -> Recording:
    manifest = daemonset(rolling=more.pop("rolling", {"maxUnavailable": 2}))
    question = ForecastRequest(
        old=with_previous_images(manifest), new=manifest, **{"nodes": NODES, **more}
    )
    return record(question)[1]


def end_states(recording: Recording) -> Counter[NodeState]:
    states = dict(recording.start)
    for change in recording.changes:
        states[change.node] = change.state
    return Counter(states.values())


def test_every_node_is_taken_starts_and_is_updated() -> None:
    found = played()
    assert set(found.start.values()) == {NodeState.OLD}
    for node in found.start:
        steps = [change.state for change in found.changes if change.node == node]
        assert steps == [NodeState.TAKEN, NodeState.STARTING, NodeState.UPDATED]
    times = [change.seconds for change in found.changes]
    assert times == sorted(times)
    assert found.end == pytest.approx(times[-1], abs=0.1)
    assert all("kubernetes.io/hostname" in labels for labels in found.labels.values())


def test_nodes_that_are_held_or_silent_do_not_change() -> None:
    found = played(rolling={"maxUnavailable": 2, "partition": 3}, not_ready=1)
    assert Counter(found.start.values())[NodeState.UNREACHABLE] == 1
    changed = {change.node for change in found.changes}
    assert not [node for node in changed if found.start[node] is not NodeState.OLD]
    assert end_states(found)[NodeState.HELD] >= 2


def test_nodes_that_do_not_become_available_are_stuck_at_the_end() -> None:
    found = played(failing=NODES)
    assert end_states(found) == {NodeState.STUCK: 2, NodeState.OLD: NODES - 2}


def test_a_state_is_noted_once() -> None:
    recorder = RolloutRecorder()
    recorder.begin({"a": NodeState.OLD})
    recorder.note(1.0, "a", NodeState.TAKEN)
    recorder.note(2.0, "a", NodeState.TAKEN)
    found = recorder.finish(3.0, labels={}, held=(), stuck=())
    assert found.changes == (StateChange(1.0, "a", NodeState.TAKEN),)
