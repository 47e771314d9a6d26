"""Single values that are right, odd or hostile, and JSON text that no encoder would write."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final

from everynode.api import types


class Literal:
    """A value that is written into JSON as it stands."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Literal({self.text[:40]!r})"


def encode(value: Any) -> bytes:
    """JSON of a value, literals and lone surrogates included."""
    return _text(value).encode()


def _text(value: Any) -> str:
    if isinstance(value, Literal):
        return value.text
    if isinstance(value, dict):
        members = (f"{json.dumps(key)}:{_text(item)}" for key, item in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return json.dumps(value)


NUMBERS: Final = (0, 1, -1, 7, 2**31 - 1, 2**31, -(2**31) - 1, 2**63 - 1, 2**63, 2**64, 10**30)
LITERALS: Final = (
    "1e400",
    "1" * 400,
    "1" * 5000,
    "-0",
    "-0.0",
    "1.0",
    "1E2",
    "0.1",
    "1e-7",
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\u0000"',
    "[" * 60 + "]" * 60,
    "[" * 3000 + "]" * 3000,
    '{"a":' * 2000 + "1" + "}" * 2000,
    '{"a":1,"a":2}',
)
NAMES: Final = ("a", "b", "c", "m", "x-1", "a.b", "n1", "kube-root-ca.crt")
ODD_NAMES: Final = (
    "",
    "A",
    "a_b",
    "-a",
    "a-",
    "a..b",
    "a/b",
    "..",
    ".",
    "%2e",
    "a" * 63,
    "a" * 64,
    "a" * 253,
    "a" * 254,
    "é",
    " ",
    "a b",
    "a\nb",
    "\x00",
    "*",
    "$(A)",
    "{{.}}",
    "%s%n",
)
LABEL_KEYS: Final = ("a", "app", "b/c", "example.test/x", "controller-revision-hash")
QUANTITIES: Final = ("1", "100m", "1Ki", "1.5Gi", "1e3", "0", "10M", "0.1", "1E")
ODD_QUANTITIES: Final = (
    "-1",
    "1.",
    ".5",
    "+1",
    "1e99999",
    "1e-99999",
    "0x10",
    "1kI",
    "1 Gi",
    "9" * 60,
    "0." + "0" * 50 + "1",
    "1e",
    "Ki",
    "1ki",
    "٣",
    "1_000",
    "NaN",
    "inf",
)
TIMES: Final = ("2024-02-29T12:00:00Z", "2020-01-01T00:00:00Z", "2031-12-31T23:59:59Z")
ODD_TIMES: Final = (
    "2020-13-45T00:00:00Z",
    "2020-01-01",
    "0000-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:60Z",
    "10000-01-01T00:00:00Z",
    "2020-01-01T00:00:00+25:00",
    "2020-01-01T00:00:00.123456789123Z",
    "2020-01-01T24:00:00Z",
    "2020-01-01t00:00:00z",
    "٢٠٢٠-01-01T00:00:00Z",
)
AMOUNTS: Final = (0, 1, 5, "10%", "100%", "0%")
ODD_AMOUNTS: Final = (-1, "-5%", "101%", "10", "%", "1.5%", "9" * 30 + "%", 2**31, 2**40, "٣%", 1.5)
TEXTS: Final = ("", "a", "b", "Always", "True", "value", "x:1", "/a", "TCP", "10.0.0.1", "c")
ODD_TEXTS: Final = (
    *ODD_NAMES,
    *ODD_QUANTITIES,
    *ODD_TIMES,
    "x" * 2000,
    "\ud800",
    "(((",
    "[a-z",
    "(a+)+$",
    "\\",
    "~1",
    "~2",
    "metadata",
    "f:metadata",
    "k:{}",
    "$patch",
    '"',
    "null",
    "1",
    "true",
)
EMPTY: Final[tuple[Any, ...]] = ([], {}, [None], {"": None}, [[]], [{}], {"a": {"b": 1}}, [1, "a"])


def hostile(random: Random) -> Any:
    """Something that hardly ever belongs where it is put."""
    sort = random.randrange(7)
    if sort == 0:
        return None
    if sort == 1:
        return random.choice(NUMBERS)
    if sort == 2:
        return Literal(random.choice(LITERALS))
    if sort == 3:
        return random.choice(EMPTY)
    if sort == 4:
        return random.choice((True, False, 1.5, -0.5, 1e300))
    return random.choice(ODD_TEXTS)


def special(random: Random, name: str, *, odd: bool) -> Any:
    """A value of a type that is a scalar with a grammar of its own; None for other types."""
    if name == types.QUANTITY:
        return random.choice(ODD_QUANTITIES if odd else QUANTITIES)
    if name == types.INT_OR_STRING:
        return random.choice(ODD_AMOUNTS if odd else AMOUNTS)
    if name == types.TIME:
        return random.choice(ODD_TIMES if odd else TIMES)
    if name == types.MICRO_TIME:
        return random.choice(ODD_TIMES) if odd else random.choice(TIMES)[:-1] + ".000000Z"
    return None


def scalar(random: Random, sort: str, name: str, enum: tuple[str, ...], *, odd: bool) -> Any:
    """A value of a plain type: mostly one that the field of that name takes."""
    if odd:
        pool = {"string": ODD_TEXTS, "integer": NUMBERS, "number": NUMBERS}.get(sort)
        return hostile(random) if pool is None else random.choice(pool)
    if sort == "boolean":
        return random.random() < 0.5
    if sort == "integer":
        return random.choice((0, 1, 5, 30, 8080))
    if sort == "number":
        return random.choice((0, 1, 0.5))
    if enum:
        return random.choice(enum)
    if name in ("name", "key") or name.endswith("Name"):
        return random.choice(NAMES)
    return random.choice(TEXTS)
