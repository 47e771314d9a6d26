from __future__ import annotations

import pytest

from everynode.apiserver.request.url import TargetError, parse_target


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("/a/b", "/a/b", ()),
        ("/a%2fb?", "/a/b", ()),
        ("/%e2%82%ac%ff", "/\u20ac\ufffd", ()),
        ("/a?x=1&x=2&y", "/a", (("x", "1"), ("x", "2"), ("y", ""))),
        ("/a?x=%zz&y=a+b%2B&z=1;2", "/a", (("y", "a b+"),)),
        ("/a?x=%ff", "/a", (("x", "\ufffd"),)),
        ("https://host:1/a?x=1", "/a", (("x", "1"),)),
    ],
)
def test_addresses_are_read_as_go_does(
    target: str, path: str, query: tuple[tuple[str, str], ...]
) -> None:
    assert parse_target(target) == (path, query)


@pytest.mark.parametrize("target", ["/%", "/%z1", "/a%2", "*", "", "host:443", "http://[::1/a"])
def test_address_that_cannot_be_decoded_is_refused(target: str) -> None:
    with pytest.raises(TargetError):
        parse_target(target)
