from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api.objects import Taint, Toleration
from everynode.api.taints import (
    EVICTING_EFFECTS,
    NO_EXECUTE,
    NO_SCHEDULE,
    PREFER_NO_SCHEDULE,
    daemon_tolerations,
    find_untolerated_taint,
    tolerates,
    with_daemon_tolerations,
    with_daemon_tolerations_json,
)

GPU = Taint("gpu", "a100", NO_SCHEDULE)
OLD = Taint("old", "", NO_EXECUTE)
SOFT = Taint("soft", "", PREFER_NO_SCHEDULE)
NOT_READY = "node.kubernetes.io/not-ready"


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(operator="Exists"), True),
        (Toleration("gpu", "Exists"), True),
        (Toleration("gpu", "Exists", effect=NO_SCHEDULE), True),
        (Toleration("gpu", "Exists", effect=NO_EXECUTE), False),
        (Toleration("cpu", "Exists"), False),
        (Toleration("gpu", "Equal", "a100"), True),
        (Toleration("gpu", "", "a100"), True),
        (Toleration("gpu", "Equal", "h100"), False),
        (Toleration("gpu"), False),
        (Toleration("", "Equal", "a100"), True),
        (Toleration("gpu", "Gt", "1"), False),
        (Toleration("gpu", "Near", "a100"), False),
    ],
)
def test_a_toleration_covers_a_taint_by_key_value_and_effect(
    toleration: Toleration, expected: bool
) -> None:
    assert tolerates(toleration, GPU) is expected


def test_the_first_taint_that_nothing_tolerates_is_named() -> None:
    gpu = Toleration("gpu", "Exists")
    assert find_untolerated_taint((GPU, OLD), ()) is GPU
    assert find_untolerated_taint((GPU, OLD), (gpu,)) is OLD
    assert find_untolerated_taint((GPU, OLD), (gpu, Toleration("old", "Exists"))) is None
    assert find_untolerated_taint((), ()) is None


def test_only_the_effects_asked_for_count() -> None:
    assert find_untolerated_taint((SOFT,), ()) is None
    assert find_untolerated_taint((GPU, OLD), (), effects=EVICTING_EFFECTS) is OLD
    assert find_untolerated_taint((GPU,), (), effects=EVICTING_EFFECTS) is None


def test_daemon_pods_stay_on_nodes_in_trouble() -> None:
    written = [
        (each.key.split("/")[1], each.effect) for each in daemon_tolerations(host_network=False)
    ]
    assert written == [
        ("not-ready", NO_EXECUTE),
        ("unreachable", NO_EXECUTE),
        ("disk-pressure", NO_SCHEDULE),
        ("memory-pressure", NO_SCHEDULE),
        ("pid-pressure", NO_SCHEDULE),
        ("unschedulable", NO_SCHEDULE),
    ]


def test_a_pod_in_the_hosts_network_does_not_wait_for_the_network() -> None:
    network = Taint("node.kubernetes.io/network-unavailable", "", NO_SCHEDULE)
    assert find_untolerated_taint((network,), daemon_tolerations(host_network=True)) is None
    assert find_untolerated_taint((network,), daemon_tolerations(host_network=False)) is network


def test_the_templates_tolerations_come_first() -> None:
    own = Toleration("gpu", "Exists")
    merged = with_daemon_tolerations((own,), host_network=False)
    assert merged == (own, *daemon_tolerations(host_network=False))


def test_the_same_toleration_is_replaced_in_place_and_never_expires() -> None:
    own: list[dict[str, Any]] = [
        {"key": NOT_READY, "operator": "Exists", "effect": NO_EXECUTE, "tolerationSeconds": 30},
        {"key": "gpu", "operator": "Exists"},
    ]
    merged = with_daemon_tolerations_json(own, host_network=False)
    assert merged[0] == {"key": NOT_READY, "operator": "Exists", "effect": NO_EXECUTE}
    assert merged[1] == {"key": "gpu", "operator": "Exists"}
    assert len(merged) == 7
    assert own[0]["tolerationSeconds"] == 30


@pytest.mark.parametrize(
    "similar",
    [
        {"key": NOT_READY, "operator": "Exists", "effect": NO_SCHEDULE},
        {"key": NOT_READY, "operator": "Equal", "effect": NO_EXECUTE},
        {"key": NOT_READY, "operator": "Exists", "effect": NO_EXECUTE, "value": "x"},
        {"key": NOT_READY, "effect": NO_EXECUTE},
    ],
)
def test_a_similar_toleration_is_kept_beside(similar: dict[str, Any]) -> None:
    merged = with_daemon_tolerations_json([similar], host_network=False)
    assert merged[0] == similar
    assert len(merged) == 7


def test_a_template_without_tolerations_gets_them_all() -> None:
    assert len(with_daemon_tolerations_json(None, host_network=True)) == 7


tolerations = st.builds(
    Toleration,
    st.sampled_from(("", "gpu", NOT_READY, "node.kubernetes.io/unschedulable")),
    st.sampled_from(("", "Equal", "Exists")),
    st.sampled_from(("", "a100")),
    st.sampled_from(("", NO_SCHEDULE, NO_EXECUTE)),
)


@given(st.lists(tolerations, max_size=6), st.booleans())
def test_json_and_structs_are_merged_alike(own: list[Toleration], host_network: bool) -> None:
    written = [
        {"key": each.key, "operator": each.operator, "value": each.value, "effect": each.effect}
        for each in own
    ]
    merged = with_daemon_tolerations_json(written, host_network=host_network)
    assert tuple(
        Toleration(each["key"], each["operator"], each.get("value", ""), each["effect"])
        for each in merged
    ) == with_daemon_tolerations(own, host_network=host_network)
