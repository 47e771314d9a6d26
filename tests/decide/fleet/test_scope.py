from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from everynode.api.daemonset import IntOrPercent, UpdateStrategy, UpdateStrategyType
from everynode.decide.fleet.scope import Scope

OLD = {"holds_target": False, "desired": True, "selected": True}
NEW = {"holds_target": True, "desired": True, "selected": True}
OTHER = {"holds_target": False, "desired": True, "selected": False}
STRAY = {"holds_target": False, "desired": False, "selected": True}


def scope_of(strategy: UpdateStrategy, nodes: dict[str, dict[str, bool]]) -> Scope:
    scope = Scope(strategy)
    for name, standing in nodes.items():
        scope.update(name, **standing)
    scope.rebalance()
    return scope


def members(scope: Scope, nodes: dict[str, dict[str, bool]]) -> list[str]:
    return [name for name in nodes if name in scope]


def test_without_partition_every_node_is_in_scope() -> None:
    nodes = {"n1": OLD, "n2": NEW, "n3": OLD}
    assert members(scope_of(UpdateStrategy(), nodes), nodes) == ["n1", "n2", "n3"]


def test_updated_nodes_come_first_then_names_descending() -> None:
    nodes = {"n1": NEW, "n2": OLD, "n3": OLD}
    scope = scope_of(UpdateStrategy(partition=IntOrPercent(1)), nodes)
    assert members(scope, nodes) == ["n1", "n3"]


def test_partition_and_selector_together_update_only_selected_nodes() -> None:
    nodes = {"n1": OLD, "n2": NEW, "n3": OLD, "n4": OLD}
    nodes["n5"] = OTHER
    scope = scope_of(UpdateStrategy(partition=IntOrPercent(3)), nodes)
    assert members(scope, nodes) == ["n2", "n4"]


def test_a_node_outside_the_selector_is_held() -> None:
    nodes = {"n1": OTHER, "n2": OLD}
    assert members(scope_of(UpdateStrategy(), nodes), nodes) == ["n2"]


def test_partition_of_everything_holds_everything_but_what_is_updated() -> None:
    nodes = {"n1": NEW, "n2": OLD}
    assert members(scope_of(UpdateStrategy(partition=IntOrPercent(2)), nodes), nodes) == ["n1"]
    assert members(scope_of(UpdateStrategy(partition=IntOrPercent(100, True)), nodes), nodes) == [
        "n1"
    ]


def test_a_partition_of_100_on_120_nodes_updates_20() -> None:
    nodes = {f"n{i:03}": OLD for i in range(1, 121)}
    scope = scope_of(UpdateStrategy(partition=IntOrPercent(100)), nodes)
    assert members(scope, nodes) == [f"n{i:03}" for i in range(101, 121)]


def test_a_partition_that_comes_to_nothing_holds_no_node_that_the_template_excludes() -> None:
    nodes = {f"n{i}": OLD for i in range(8)} | {"stray": {**STRAY, "occupied": True}}
    scope = scope_of(UpdateStrategy(partition=IntOrPercent(5, True)), nodes)
    assert members(scope, nodes) == list(nodes)
    for number in range(8, 20):
        scope.update(f"n{number}", **OLD)
    scope.rebalance()
    assert "stray" not in scope
    scope.remove("n19")
    scope.remove("n18")
    assert "stray" in scope.rebalance()
    assert "stray" in scope


def test_half_of_the_one_node_that_a_wrong_selector_leaves_still_holds_the_others() -> None:
    nodes = {"n1": OLD} | {f"stray{i}": {**STRAY, "occupied": True} for i in range(7)}
    scope = scope_of(UpdateStrategy(partition=IntOrPercent(50, True)), nodes)
    assert members(scope, nodes) == ["n1"]


def test_percent_partition_is_of_desired_rounded_down() -> None:
    nodes = {f"n{i}": OLD for i in range(10)}
    assert (
        len(members(scope_of(UpdateStrategy(partition=IntOrPercent(33, True)), nodes), nodes)) == 7
    )
    assert (
        len(members(scope_of(UpdateStrategy(partition=IntOrPercent(5, True)), nodes), nodes)) == 10
    )


def test_paused_keeps_only_what_is_updated_in_scope_but_releases_as_before() -> None:
    nodes = {"n1": OLD, "n2": NEW, "n3": OLD}
    scope = scope_of(UpdateStrategy(partition=IntOrPercent(1), paused=True), nodes)
    assert members(scope, nodes) == ["n2"]
    assert [name for name in nodes if scope.released(name)] == ["n2", "n3"]


def test_on_delete_holds_nothing() -> None:
    nodes = {"n1": OTHER, "n2": OLD, "n3": STRAY}
    strategy = UpdateStrategy(
        type=UpdateStrategyType.ON_DELETE, partition=IntOrPercent(3), paused=True
    )
    assert members(scope_of(strategy, nodes), nodes) == ["n1", "n2", "n3"]


def test_an_unwanted_node_takes_no_place_and_is_touched_only_without_partition() -> None:
    nodes = {"n1": OLD, "n2": OLD, "n9": STRAY}
    assert members(scope_of(UpdateStrategy(partition=IntOrPercent(1)), nodes), nodes) == ["n2"]
    assert members(scope_of(UpdateStrategy(), nodes), nodes) == ["n1", "n2", "n9"]


def test_a_template_that_wants_no_node_empties_none_of_them_during_a_canary() -> None:
    nodes = {name: {**STRAY, "occupied": True} for name in ("n1", "n2")}
    assert members(scope_of(UpdateStrategy(partition=IntOrPercent(50, True)), nodes), nodes) == []


def test_only_nodes_at_the_boundary_are_reported() -> None:
    nodes = {f"n{i:03}": OLD for i in range(100)}
    scope = scope_of(UpdateStrategy(partition=IntOrPercent(60)), nodes)
    scope.update("n500", **OLD)
    assert scope.rebalance() == ["n500"]
    scope.update("n000", **OLD)
    assert scope.rebalance() == []
    scope.update("n-low", **OLD)
    assert scope.rebalance() == ["n059"]
    scope.remove("n500")
    assert scope.rebalance() == []
    assert "n500" not in scope


def test_a_node_that_gets_the_target_by_itself_takes_the_place_of_the_last() -> None:
    nodes = {"n1": OLD, "n2": OLD, "n3": OLD}
    scope = scope_of(UpdateStrategy(partition=IntOrPercent(1)), nodes)
    scope.update("n1", **NEW)
    assert scope.rebalance() == ["n1", "n2"]
    assert members(scope, nodes) == ["n1", "n3"]


STANDINGS = st.tuples(st.booleans(), st.booleans(), st.booleans())
CHANGES = st.lists(st.tuples(st.integers(0, 9), st.none() | STANDINGS), max_size=40)
PARTITIONS = st.builds(IntOrPercent, st.integers(0, 12)) | st.builds(
    IntOrPercent, st.integers(0, 100), st.just(True)
)


@given(CHANGES, PARTITIONS, st.booleans())
@settings(max_examples=200)
def test_any_sequence_of_changes_ends_where_a_fresh_scope_begins(
    changes: list[tuple[int, tuple[bool, bool, bool] | None]], partition: IntOrPercent, paused: bool
) -> None:
    strategy = UpdateStrategy(partition=partition, paused=paused)
    scope, known = Scope(strategy), set[str]()
    nodes: dict[str, dict[str, bool]] = {}
    for number, standing in changes:
        name = f"n{number}"
        if standing is None:
            scope.remove(name)
            nodes.pop(name, None)
            known.discard(name)
            continue
        nodes[name] = dict(zip(OLD, standing, strict=True))
        scope.update(name, **nodes[name])
        if number % 2:
            known ^= set(scope.rebalance())
    known ^= set(scope.rebalance())
    fresh = scope_of(strategy, nodes)
    assert members(scope, nodes) == members(fresh, nodes)
    assert known == set(members(scope, nodes))
    assert [n for n in nodes if scope.released(n)] == [n for n in nodes if fresh.released(n)]


@given(CHANGES, PARTITIONS)
@settings(max_examples=200)
def test_the_cut_is_never_exceeded_by_nodes_that_still_wait(
    changes: list[tuple[int, tuple[bool, bool, bool] | None]], partition: IntOrPercent
) -> None:
    nodes = {f"n{i}": dict(zip(OLD, s, strict=True)) for i, s in changes if s is not None}
    scope = scope_of(UpdateStrategy(partition=partition), nodes)
    wanted = [n for n in nodes if nodes[n]["desired"]]
    kept = partition.value * len(wanted) // 100 if partition.percent else partition.value
    moved = [n for n in wanted if n in scope]
    updated = [n for n in wanted if nodes[n]["holds_target"]]
    assert len(moved) <= max(len(updated), len(wanted) - kept)
    waiting = [n for n in wanted if nodes[n]["selected"] and not nodes[n]["holds_target"]]
    inside = [n for n in waiting if n in scope]
    assert inside == [n for n in waiting if n in sorted(waiting)[len(waiting) - len(inside) :]]
