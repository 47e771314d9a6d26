from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.api.keys import NAME_ALPHABET
from everynode.decide.pods.name import HASH_LENGTH, pod_name

LABEL = re.compile("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?(\.[a-z0-9]{1,30}){0,6}", fullmatch=True)
uids = st.lists(st.uuids().map(str), max_size=3)


@given(names, st.text(max_size=80), uids, uids)
def test_a_name_is_a_dns_label(ds: str, node: str, replaced: list[str], others: list[str]) -> None:
    name = pod_name(ds, "uid", node, "rev", replaced, others)
    assert LABEL.fullmatch(name)
    assert len(name) <= 63


@given(st.permutations(["a", "b", "c"]), st.permutations(["x", "y"]))
def test_the_order_of_uids_does_not_matter(replaced: list[str], name_holders: list[str]) -> None:
    expected = pod_name("agent", "uid", "n1", "rev", ("a", "b", "c"), ("x", "y"))
    assert pod_name("agent", "uid", "n1", "rev", replaced, name_holders) == expected


@pytest.mark.parametrize(
    "other",
    [
        pod_name("agent", "uid2", "n1", "rev"),
        pod_name("agent", "uid", "n2", "rev"),
        pod_name("agent", "uid", "n1", "rev2"),
        pod_name("agent", "uid", "n1", "rev", ("old",)),
        pod_name("agent", "uid", "n1", "rev", (), ("old",)),
        pod_name("agent", "uid", "n1r", "ev"),
    ],
)
def test_whatever_differs_gives_another_name(other: str) -> None:
    assert pod_name("agent", "uid", "n1", "rev") != other


def test_the_hash_has_more_than_sixty_bits() -> None:
    assert HASH_LENGTH * math.log2(len(NAME_ALPHABET)) > 60


def test_the_name_never_changes_between_releases() -> None:
    # A controller of another version must choose the same name, or both create a pod.
    assert pod_name("agent", "uid", "n1", "rev", ("r",), ("s",)) == "agent-qwnkzfl5l6hsw"


def test_long_names_are_cut_before_the_hash() -> None:
    name = pod_name("a" * 48 + "-b", "uid", "n1", "rev")
    assert name.startswith("a" * 48 + "-")
    assert len(name) == 48 + 1 + HASH_LENGTH
