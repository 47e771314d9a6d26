from __future__ import annotations

import pytest

from everynode.cluster.errors import Refusal
from everynode.cluster.selection import select
from everynode.cluster.store import Record

FIELDS = ("spec.nodeName", "status.phase")


def record(name: str = "a", namespace: str = "ns", **labels: str) -> Record:
    return Record(namespace, name, "u", 1, b"", labels, ("n1", "Running"))


def test_everything_is_selected_by_nothing() -> None:
    selection = select("", "", "", selectable=FIELDS)
    assert not selection.filtered
    assert selection.matches(record())


@pytest.mark.parametrize(
    ("labels", "matches"),
    [
        ("app=web", True),
        ("app==web,tier!=db", True),
        ("app in (api, web)", True),
        ("app notin (web)", False),
        ("!tier", True),
        ("tier", False),
    ],
)
def test_labels_are_asked_for_in_every_form(labels: str, matches: bool) -> None:
    selection = select("", labels, "", selectable=FIELDS)
    assert selection.matches(record(app="web")) is matches


@pytest.mark.parametrize(
    ("fields", "matches"),
    [
        ("metadata.name=a", True),
        ("metadata.name!=a", False),
        ("metadata.namespace=ns", True),
        ("spec.nodeName=n1,status.phase!=Failed", True),
        ("spec.nodeName=", False),
    ],
)
def test_fields_are_asked_for(fields: str, matches: bool) -> None:
    assert select("", "", fields, selectable=FIELDS).matches(record()) is matches


def test_other_namespaces_are_not_selected() -> None:
    assert not select("other", "", "", selectable=()).matches(record())


def test_unknown_field_is_refused_in_the_words_of_the_server() -> None:
    with pytest.raises(Refusal, match=r"field label not supported: spec\.foo"):
        select("", "", "spec.foo=1", selectable=FIELDS)
    with pytest.raises(Refusal, match=r'"spec\.foo" is not a known field selector: only'):
        select("", "", "spec.foo=1", selectable=())


def test_label_selector_that_makes_no_sense_is_a_bad_request() -> None:
    with pytest.raises(Refusal) as caught:
        select("", "a in b", "", selectable=())
    assert caught.value.code == 400
