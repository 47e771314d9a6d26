from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everynode.apiserver.errors import StatusError
from everynode.apiserver.request.api_request import ResourcePath
from everynode.apiserver.request.paths import resolve_path
from everynode.apiserver.resources.builtin import builtin_kinds
from everynode.apiserver.resources.registry import Registry

KINDS = Registry(builtin_kinds())


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/api/v1/pods", ("pods", "", "", "")),
        ("/api/v1/namespaces/ns/pods", ("pods", "ns", "", "")),
        ("/api/v1/namespaces/ns/pods/p", ("pods", "ns", "p", "")),
        ("/api/v1/namespaces/ns/pods/p/status", ("pods", "ns", "p", "status")),
        ("/api/v1/namespaces", ("namespaces", "", "", "")),
        ("/api/v1/namespaces/ns", ("namespaces", "", "ns", "")),
        ("/api/v1/namespaces/ns/finalize", ("namespaces", "", "ns", "finalize")),
        ("/api/v1/nodes/n/status", ("nodes", "", "n", "status")),
        ("/apis/apps/v1/namespaces/ns/daemonsets/d", ("daemonsets", "ns", "d", "")),
    ],
)
def test_address_leads_to_its_place(path: str, found: tuple[str, str, str, str]) -> None:
    place = resolve_path(path, KINDS)
    assert place is not None
    assert (place.kind.plural, place.namespace, place.name, place.subresource) == found


@pytest.mark.parametrize("path", ["/", "/api", "/api/v1", "/apis/apps/v1", "/apis/nope/v1/x", "/x"])
def test_addresses_outside_the_resources_are_left_to_others(path: str) -> None:
    assert resolve_path(path, KINDS) is None


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/foos",
        "/api/v1/pods/p",
        "/api/v1/namespaces/ns/nodes",
        "/api/v1/namespaces/ns/pods/p/foo",
        "/api/v1/namespaces/ns/pods/p/status/x",
        "/api/v1/namespaces/ns/pods//",
    ],
)
def test_resource_that_a_group_does_not_have_is_refused(path: str) -> None:
    with pytest.raises(StatusError) as caught:
        resolve_path(path, KINDS)
    assert caught.value.code == 404
    assert caught.value.message == "the server could not find the requested resource"


SEGMENTS = ("namespaces", "ns", "pods", "nodes", "status", "finalize", "p", "foo", "")


def found(path: str, kinds: Registry) -> ResourcePath | str | None:
    try:
        return resolve_path(path, kinds)
    except StatusError as refusal:
        return refusal.message


@given(
    st.lists(st.sampled_from(SEGMENTS), max_size=6),
    st.sampled_from(["/api/v1", "/apis/apps/v1"]),
    st.integers(1, 3),
)
def test_what_is_known_of_other_addresses_makes_no_difference(
    steps: list[str], root: str, stride: int
) -> None:
    warm = Registry(builtin_kinds())
    for end in range(len(steps) % stride, len(steps) + 1, stride):
        path = "/".join([root, *steps[:end]])
        assert found(path, warm) == found(path, Registry(builtin_kinds()))
