from __future__ import annotations

import msgspec
import pytest

from everynode.api.affinity import NodeMatcher, pinned_node, required_terms
from everynode.api.objects import Affinity

Term = dict[str, list[dict[str, object]]]


def affinity_of(*terms: Term) -> Affinity:
    required = {"nodeSelectorTerms": list(terms)}
    return msgspec.convert(
        {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}, Affinity
    )


def label(operator: str, *values: str, key: str = "cores") -> Term:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def field(operator: str, *values: str, key: str = "metadata.name") -> Term:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


def allows(*terms: Term, name: str = "n1", **labels: str) -> bool:
    matcher = NodeMatcher({}, affinity_of(*terms))
    assert matcher.matches(name, labels) is not bool(matcher.mismatch(name, labels))
    return matcher.matches(name, labels)


@pytest.mark.parametrize(
    ("term", "labels", "expected"),
    [
        (label("In", "4", "8"), {"cores": "8"}, True),
        (label("In", "4", "8"), {"cores": "16"}, False),
        (label("In", "4"), {}, False),
        (label("NotIn", "4"), {"cores": "8"}, True),
        (label("NotIn", "4"), {"cores": "4"}, False),
        (label("NotIn", "4"), {}, True),
        (label("Exists"), {"cores": ""}, True),
        (label("Exists"), {}, False),
        (label("DoesNotExist"), {}, True),
        (label("DoesNotExist"), {"cores": "4"}, False),
        (label("Gt", "4"), {"cores": "5"}, True),
        (label("Gt", "4"), {"cores": "4"}, False),
        (label("Gt", "4"), {"cores": "many"}, False),
        (label("Gt", "4"), {"cores": "1_000"}, False),
        (label("Gt", "4"), {}, False),
        (label("Lt", "4"), {"cores": "3"}, True),
        (label("Lt", "4"), {"cores": "4"}, False),
        (label("Lt", "4"), {"cores": "9223372036854775808"}, False),
    ],
)
def test_each_operator_compares_the_label(
    term: Term, labels: dict[str, str], expected: bool
) -> None:
    assert allows(term, **labels) is expected


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        (field("In", "n1"), True),
        (field("In", "n2"), False),
        (field("NotIn", "n1"), False),
        (field("NotIn", "n2"), True),
        (field("In", "n1", key="metadata.uid"), False),
        (field("NotIn", "n1", key="metadata.uid"), True),
    ],
)
def test_the_only_field_is_the_name(term: Term, expected: bool) -> None:
    assert allows(term) is expected


def test_one_term_is_enough() -> None:
    assert allows(label("In", "4"), label("In", "8"), cores="8")


def test_all_of_a_term_must_hold() -> None:
    both = {**label("In", "4"), **field("In", "n1")}
    assert allows(both, cores="4")
    assert not allows(both, cores="4", name="n2")
    assert not allows(both, cores="8")


def test_an_empty_term_selects_nothing_and_so_do_no_terms() -> None:
    assert not allows({})
    assert not allows()
    assert allows({}, label("Exists"), cores="4")


@pytest.mark.parametrize(
    ("term", "fault"),
    [
        (label("Near", "4"), 'matchExpressions[0].operator: Unsupported value: "Near"'),
        (label("=", "4"), 'matchExpressions[0].operator: Unsupported value: "="'),
        (label("In"), "matchExpressions[0].values: Invalid value: []: for 'in', 'notin'"),
        (label("Exists", "4"), "matchExpressions[0].values: Invalid value"),
        (label("Gt", "four"), 'matchExpressions[0].values[0]: Invalid value: "four"'),
        (label("Gt", "4", "5"), "exactly one value is required"),
        (label("Exists", key="a b"), 'matchExpressions[0].key: Invalid value: "a b"'),
        (field("In", "n1", "n2"), "matchFields[0].values: must have one element"),
        (field("Exists"), 'matchFields[0].operator: Unsupported value: "Exists"'),
    ],
)
def test_a_term_without_sense_matches_nothing_and_is_named(term: Term, fault: str) -> None:
    labels = {"cores": "4"}
    alone = NodeMatcher({}, affinity_of(term))
    assert not alone.matches("n1", labels)
    assert len(alone.faults) == 1
    assert alone.faults[0].startswith("nodeSelectorTerms[0].")
    assert fault in alone.faults[0]
    beside_another = NodeMatcher({}, affinity_of(term, label("Exists")))
    assert beside_another.matches("n1", labels)


def test_the_node_selector_must_match_in_every_pair() -> None:
    matcher = NodeMatcher({"disk": "ssd", "arch": "arm64"})
    assert matcher.matches("n1", {"disk": "ssd", "arch": "arm64", "cores": "4"})
    assert not matcher.matches("n1", {"disk": "ssd"})
    assert matcher.mismatch("n1", {"disk": "hdd", "arch": "arm64"}) == (
        "node selector disk=ssd does not match"
    )


def test_node_selector_and_affinity_must_both_match() -> None:
    matcher = NodeMatcher({"disk": "ssd"}, affinity_of(label("In", "4")))
    assert matcher.matches("n1", {"disk": "ssd", "cores": "4"})
    assert not matcher.matches("n1", {"disk": "hdd", "cores": "4"})
    assert matcher.mismatch("n1", {"disk": "ssd"}) == "required node affinity does not match"


@pytest.mark.parametrize(
    "affinity", [None, Affinity(), msgspec.convert({"nodeAffinity": {}}, Affinity)]
)
def test_without_required_affinity_any_node_will_do(affinity: Affinity | None) -> None:
    assert required_terms(affinity) is None
    assert NodeMatcher({}, affinity).matches("n1", {})
    assert pinned_node(affinity) == ""


@pytest.mark.parametrize(
    ("terms", "node"),
    [
        ((field("In", "n7"),), "n7"),
        ((label("Exists"), field("In", "n7")), "n7"),
        (({**label("Exists"), **field("In", "n7")},), "n7"),
        ((field("In", "n7"), field("In", "n8")), "n7"),
        ((field("NotIn", "n7"),), ""),
        ((field("In", "n7", "n8"), field("In", "n9")), ""),
        ((field("In", "u1", key="metadata.uid"),), ""),
        ((label("In", "n7", key="metadata.name"),), ""),
        ((), ""),
    ],
)
def test_a_pod_is_pinned_by_the_first_name_it_must_match(
    terms: tuple[Term, ...], node: str
) -> None:
    assert pinned_node(affinity_of(*terms)) == node
