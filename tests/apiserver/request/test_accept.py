from __future__ import annotations

import pytest

from everynode.apiserver.request.accept import Accept

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("header", "version"),
    [
        (TABLE, "v1"),
        (f"{TABLE},application/json", "v1"),
        (f"application/json,{TABLE}", None),
        ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", None),
        (f"text/html, {TABLE}", "v1"),
        ("application/json", None),
        ("", None),
    ],
)
def test_first_wish_that_can_be_met_counts(header: str, version: str | None) -> None:
    assert Accept(header).preferred_version("Table", ("v1", "v1beta1")) == version


@pytest.mark.parametrize("header", ["", "application/json", "*/*", f"{TABLE}, */*"])
def test_plain_json_will_do(header: str) -> None:
    assert Accept(header).plain


@pytest.mark.parametrize("header", ["text/html", TABLE, "application/vnd.kubernetes.protobuf"])
def test_plain_json_will_not_do(header: str) -> None:
    assert not Accept(header).plain
