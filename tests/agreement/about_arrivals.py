"""Questions with unusual paths, numbers, tokens and bodies."""

from __future__ import annotations

import base64
import json
from typing import Any

from everynode.kube.requests import MERGE_PATCH
from tests.agreement.question import MAPS, NODES, PODS, Question, ask, config_map, get, pod

LONG = "9" * 5000
NUMBERS = (
    LONG,
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1_0",
    "1e3",
    "0x1",
    "%201",
    "%D9%A1",
    "abc",
    "-0",
    "",
)


def at(path: str, method: str = "GET", body: Any = None, **more: Any) -> Question:
    """A question whose address is sent as it is written here."""
    return Question(method, path, body, verbatim=True, **more)


def token(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


V1 = {"v": "meta.k8s.io/v1"}
_PARSER = "the words of the parser differ"

ADDRESSES = [
    ask("POST", MAPS, config_map("m")),
    *(
        at(path)
        for path in (
            f"{MAPS}/%6d",
            f"{MAPS}/%00",
            f"{MAPS}/%0a",
            f"{MAPS}/{'a' * 8000}",
            "/api/v1%2fnamespaces%2fNS%2fconfigmaps/m",
            f"{MAPS}/m?resourceVersion=0&resourceVersion=x",
            f"{MAPS}?resourceVersionMatch=x&resourceVersionMatch=Exact",
            f"{MAPS}/m?pretty=%zz",
            f"{MAPS}?limit=%zz",
            f"{MAPS}?limit=x;y=1",
        )
    ),
    *(at(f"{MAPS}/{name}", only="code") for name in ("%ff", "%e2%82")),  # told as U+FFFD
    at(f"{MAPS}?dryRun=All&dryRun=x", "POST", config_map("a")),
    at(f"{MAPS}?dryRun=x&dryRun=All", "POST", config_map("a")),
    at(f"{MAPS}?dryRun=All&dryRun=All", "POST", config_map("a")),
    at(f"{MAPS}?fieldValidation=Strict&fieldValidation=x", "POST", config_map("b")),
    at(f"{MAPS}/m?propagationPolicy=x&propagationPolicy=Orphan", "DELETE"),
    at(f"{MAPS}/m?gracePeriodSeconds=x", "DELETE"),
    at(f"{MAPS}/m?gracePeriodSeconds={LONG}", "DELETE"),
    at(f"{MAPS}/m?gracePeriodSeconds=&dryRun=All", "DELETE"),
    at(f"{MAPS}/m?propagationPolicy=&dryRun=All", "DELETE"),
    at(f"{MAPS}?dryRun=", "POST", config_map("empty")),
    at(f"{MAPS}?limit=x", "DELETE"),
    *(
        at(path, only="code")
        for path in (
            "//api/v1",
            "/api//v1",
            "/api/v1//pods",
            "/api/v1/",
            "/apis/",
            f"{MAPS}/",
            f"{MAPS}//m",
            f"{MAPS}/m/",
            f"{MAPS}/m/x/y",
            "/version/",
            "/healthz/",
            "/api/",
            "/apis/apps/",
            "/apis/apps/v1/",
        )
    ),
    at(f"{MAPS}/.."),
    at(f"{MAPS}/."),
    at(f"{MAPS}/a%25b"),
    at(f"{MAPS}/a%25b", "DELETE"),
    at(f"{MAPS}/", "POST", config_map("slash")),
    *(
        at(path, method, only="code")
        for method in ("HEAD", "OPTIONS", "TRACE")
        for path in (MAPS, f"{MAPS}/m", "/api/v1", "/version", "/nothing")
    ),
    at(f"{MAPS}/m?orphanDependents=x&dryRun=All", "DELETE"),
]

ODD_NUMBERS = [
    ask("POST", MAPS, config_map("m")),
    *(at(f"{MAPS}?limit={number}", only="message") for number in NUMBERS),
    *(at(f"{MAPS}?timeoutSeconds={number}", only="message") for number in NUMBERS),
    *(
        at(f"{MAPS}?resourceVersion={number}", only="code")
        for number in NUMBERS
        if not number.startswith("92")
    ),
    *(
        at(f"{MAPS}/m?resourceVersion={number}")
        for number in NUMBERS
        if not number.startswith("92")
    ),
    at(f"{MAPS}?watch=1&resourceVersion={LONG}"),
    at(f"{MAPS}?watch=1&resourceVersion=18446744073709551616"),
    at(f"{MAPS}?watch=1&timeoutSeconds={'9' * 400}"),
    at(f"{MAPS}?watch=1&timeoutSeconds=x"),
    *(
        ask("PUT", f"{MAPS}/m", config_map("m", resourceVersion=number))
        for number in (LONG, "18446744073709551616", "x", "-1", "18446744073709551615")
    ),
    *(
        ask("POST", MAPS, config_map(f"n{index}", resourceVersion=number))
        for index, number in enumerate((LONG, "18446744073709551616", "x", "-1", "0", "00", "1"))
    ),
    ask("PATCH", f"{MAPS}/m", {"metadata": {"resourceVersion": LONG}}, MERGE_PATCH),
]

TOKENS = [
    ask("POST", MAPS, config_map("a")),
    ask("POST", MAPS, config_map("b")),
    *(
        at(f"{MAPS}?limit=1&continue={made}", differs=_PARSER)
        for made in (
            "!!!",
            "a",
            "%00",
            "%C3%A9",
            token(b"{"),
            token(b"\xff\xfe"),
            token(b"[" * 5000),
            token(b'{"a":' * 3000),
            token({**V1, "rv": "x", "start": "a"}),
            token({**V1, "rv": 1}),
            token({**V1, "rv": 0, "start": "a"}),
            token({**V1, "rv": 1, "start": "../../secrets/a"}),
            token({**V1, "rv": 1, "start": "a/../b"}),
            token({**V1, "rv": 1 << 64, "start": "a"}),
            "A" * 8000,
        )
    ),
]

GRACES = [
    *(
        question
        for seconds in (
            9223372036854775807,
            -9223372036854775808,
            9223372036,
            9223372037,
            -1,
            -2,
            0,
        )
        for question in (
            ask("POST", PODS, pod(f"g{seconds}", nodeName="n1")),
            ask("DELETE", f"{PODS}/g{seconds}", {"gracePeriodSeconds": seconds}),
            ask("DELETE", f"{PODS}/g{seconds}", {"gracePeriodSeconds": 0}, differs="may be gone"),
        )
    ),
]

ODD_BODIES = [
    ask("POST", MAPS, b'{"metadata":{"name":"u1"},"data":{"a":"x\xffy"}}'),
    ask("POST", MAPS, b'{"metadata":{"name":"u2"},"data":{"a":"x\xe2\x82y"}}'),
    ask("POST", MAPS, b'{"metadata":{"name":"u3"},"data":{"a":"x\xed\xa0\x80y"}}'),
    ask("POST", MAPS, b'{"metadata":{"name":"u4"},"data":{"a":"x\\ud800y"}}'),
    ask("POST", MAPS, b'{"metadata":{"name":"u5"},"data":{"a":"\\ud83d\\ude00\\\\ud800"}}'),
    ask("POST", MAPS, b'{"metadata":{"name":"u6"},"data":{"a":"\\ude00\\ud83d"}}'),
    ask("POST", MAPS, b'{"metadata":{"name":"u\xff"}}'),
    ask("POST", MAPS, b'{"metadata":{"name":"u7","labels":{"a":"\xff"}}}'),
    ask("POST", NODES, b'{"metadata":{"name":"NS-u","annotations":{"a":"\xff"}}}', only="code"),
    ask("POST", MAPS, b'{"metadata":{"name":"u8","generation":%b}}' % LONG.encode(), only="code"),
    ask("DELETE", f"{MAPS}/u1", b'{"propagationPolicy":"\xff"}'),
    ask("DELETE", f"{MAPS}/u1", b'{"gracePeriodSeconds":%b}' % LONG.encode(), only="code"),
    ask("PATCH", f"{MAPS}/u1", b'{"data":{"b":"\xff"}}', MERGE_PATCH),
    get(f"{MAPS}?labelSelector=a%20in%20("),
]
