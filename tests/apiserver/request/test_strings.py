from __future__ import annotations

import pytest

from everynode.apiserver.request.strings import (
    NumberError,
    parse_int,
    parse_uint,
    with_valid_unicode,
)
from everynode.kube.requests import Request
from tests.support.api_client import MAPS, PODS, Cluster, bound, config_map

LONG = "9" * 5000


@pytest.mark.parametrize("text", ["0", "00", "18446744073709551615", "0" * 5000 + "7"])
def test_unsigned_numbers_are_read(text: str) -> None:
    assert parse_uint(text) == int(text.lstrip("0") or "0")


@pytest.mark.parametrize("text", ["", "-1", "+1", "1_0", " 1", "\u0661", "1e3", "0x1"])
def test_text_that_is_no_number_is_named(text: str) -> None:
    with pytest.raises(NumberError, match="invalid syntax"):
        parse_uint(text)


@pytest.mark.parametrize("text", [LONG, "18446744073709551616"])
def test_number_of_more_than_64_bits_is_named(text: str) -> None:
    with pytest.raises(NumberError, match="value out of range"):
        parse_uint(text)


@pytest.mark.parametrize("text", ["-9223372036854775808", "9223372036854775807", "+5", "-0"])
def test_signed_numbers_are_read(text: str) -> None:
    assert parse_int(text) == int(text)


@pytest.mark.parametrize("text", ["-9223372036854775809", "9223372036854775808", f"-{LONG}"])
def test_signed_number_of_more_than_64_bits_is_named(text: str) -> None:
    with pytest.raises(NumberError, match="value out of range"):
        parse_int(text)


@pytest.mark.parametrize(
    ("body", "mended"),
    [
        (b'"x\xffy"', '"x\ufffdy"'.encode()),
        (b'"\xe2\x82"', '"\ufffd\ufffd"'.encode()),
        (rb'"\ud800"', rb'"\ufffd"'),
        (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
        (rb'"\\ud800"', rb'"\\ud800"'),
        (rb'"\ude00\ud83d\u0041"', rb'"\ufffd\ufffd\u0041"'),
    ],
)
def test_what_is_no_unicode_is_replaced(body: bytes, mended: bytes) -> None:
    assert with_valid_unicode(Request("POST", MAPS, body=body)).body == mended


def test_other_bodies_than_json_are_left_alone() -> None:
    request = Request("POST", MAPS, body=b"k8s\x00\xff", content_type="application/x")
    assert with_valid_unicode(request) is request


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", f"{MAPS}?resourceVersion={LONG}", None, 400),
        ("GET", f"{MAPS}?limit={LONG}", None, 400),
        ("GET", f"{MAPS}?timeoutSeconds={LONG}", None, 400),
        ("GET", f"{MAPS}?watch=1&timeoutSeconds={LONG}", None, 400),
        ("GET", f"{MAPS}?continue={'eyJhIjp7' * 3000}", None, 400),
        ("GET", f"{MAPS}?continue=eyJydiI6MSwic3RhcnQiOiIuLi9hIn0", None, 400),
        ("POST", MAPS, b'{"metadata":{"name":"n","resourceVersion":"%s"}}' % LONG.encode(), 201),
        ("POST", MAPS, b'{"metadata":{"name":"n","generation":%s}}' % LONG.encode(), 400),
        ("POST", MAPS, b'{"metadata":{"name":"n"},"data":{"a":"\xff"}}', 201),
        ("POST", MAPS, rb'{"metadata":{"name":"n"},"data":{"a":"\ud800"}}', 201),
        ("POST", MAPS, b'{"metadata":{"name":"\xff"}}', 422),
        ("DELETE", f"{PODS}/p", b'{"gracePeriodSeconds":9223372036854775807}', 200),
        ("DELETE", f"{PODS}/p", b'{"gracePeriodSeconds":%s}' % LONG.encode(), 400),
        ("DELETE", f"{PODS}/p", b'{"propagationPolicy":"\xff"}', 422),
        ("DELETE", f"{PODS}/p?gracePeriodSeconds={LONG}", None, 400),
    ],
)
async def test_odd_requests_cause_no_internal_error(
    cluster: Cluster, method: str, path: str, body: bytes | None, status: int
) -> None:
    await cluster.create(MAPS, config_map("m"))
    await cluster.create(PODS, bound("p"))
    answer = await cluster.ask(method, path, body)
    assert answer.status == status, answer.raw[:300]


async def test_made_up_continue_token_does_not_lead_out_of_the_namespace(cluster: Cluster) -> None:
    await cluster.create("/api/v1/namespaces/kube-public/configmaps", config_map("z"))
    for name in ("a", "b", "c"):
        await cluster.create("/api/v1/namespaces/kube-system/configmaps", config_map(name))
    path = "/api/v1/namespaces/kube-system/configmaps?limit=1"
    token = "eyJydiI6LTEsInN0YXJ0IjoiYSJ9"  # {"rv":-1,"start":"a"}
    page = (await cluster.get(f"{path}&continue={token}")).body
    assert [item["metadata"]["name"] for item in page["items"]] == ["a"]
    assert page["metadata"]["remainingItemCount"] == 2
