from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from everynode.api.validation import names

Rule = Callable[[str], Iterator[str]]


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (names.dns_label, ["a", "a-1", "1a", "a" * 63], ["", "A", "-a", "a-", "a.b", "a" * 64]),
        (names.dns_subdomain, ["a.b-c", "a" * 253], ["", "a..b", "a_b", ".a", "a" * 254]),
        (names.dns_search, ["_tcp.a", "a_b.c"], ["", "a b", "-a", "a" * 254]),
        (names.port_name, ["web", "a-1"], ["", "Web", "-a", "a--b", "80", "a" * 16]),
        (names.variable_name, ["A", "a.b-c d", "1"], ["", "a=b", "ä", "a\n"]),
        (names.config_key, ["a.b", "..."[:1] + "a"], ["", ".", "..", "..a", "a/b", "a" * 254]),
        (names.header_name, ["X-Header"], ["", "a b", "a:"]),
        (names.ip_address, ["10.0.0.1", "::1"], ["", "10.0.0", "host"]),
        (names.relative_path, ["", "a/b", "a..b"], ["/a", "../a", "a/.."]),
        (names.file_path, ["a/b"], ["..a", "/a", "a/../b"]),
    ],
)
def test_names_are_good_or_bad(rule: Rule, good: list[str], bad: list[str]) -> None:
    for name in good:
        assert list(rule(name)) == [], name
    for name in bad:
        assert list(rule(name)) != [], name


@pytest.mark.parametrize(("number", "good"), [(0, False), (1, True), (65535, True), (65536, False)])
def test_ports_have_16_bits(number: int, good: bool) -> None:
    assert (list(names.port_number(number)) == []) is good


@pytest.mark.parametrize(("number", "good"), [(-1, False), (0, True), (2**31, False)])
def test_ids_have_31_bits(number: int, good: bool) -> None:
    assert (list(names.user_id(number)) == []) is good
