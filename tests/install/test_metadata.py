from __future__ import annotations

from everynode.install.metadata import is_ours, new_object, with_labels


def test_what_we_name_is_ours() -> None:
    assert is_ours(new_object("v1", "Namespace", "x"))


def test_what_others_made_is_not() -> None:
    assert not is_ours({"metadata": {"name": "x"}})
    assert not is_ours({"metadata": {"name": "x", "labels": {"app.kubernetes.io/name": "x"}}})


def test_labels_are_added_to_those_that_are_there() -> None:
    before = {"metadata": {"name": "x", "labels": {"a": "1"}}}
    assert with_labels(before, {"b": "2"})["metadata"]["labels"] == {"a": "1", "b": "2"}
    assert before["metadata"]["labels"] == {"a": "1"}
