from __future__ import annotations

import pytest

from everynode.apiserver.errors import StatusError
from everynode.apiserver.storage.selectors import parse_selection
from everynode.apiserver.storage.store import Record
from everynode.apiserver.storage.stored_body import StoredBody

FIELDS = ("spec.nodeName", "status.phase")


def record(name: str = "a", namespace: str = "ns", **labels: str) -> Record:
    return Record(namespace, name, "u", 1, StoredBody(b""), labels, ("n1", "Running"))


def test_everything_is_selected_by_nothing() -> None:
    selection = parse_selection("", "", "", selectable=FIELDS)
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
    selection = parse_selection("", labels, "", selectable=FIELDS)
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
    assert parse_selection("", "", fields, selectable=FIELDS).matches(record()) is matches


def test_other_namespaces_are_not_selected() -> None:
    assert not parse_selection("other", "", "", selectable=()).matches(record())


def test_unknown_field_is_refused_in_the_words_of_the_server() -> None:
    with pytest.raises(StatusError, match=r"field label not supported: spec\.foo"):
        parse_selection("", "", "spec.foo=1", selectable=FIELDS)
    with pytest.raises(StatusError, match=r'"spec\.foo" is not a known field selector: only'):
        parse_selection("", "", "spec.foo=1", selectable=())


def test_label_selector_that_makes_no_sense_is_a_bad_request() -> None:
    with pytest.raises(StatusError) as caught:
        parse_selection("", "a in b", "", selectable=())
    assert caught.value.code == 400
