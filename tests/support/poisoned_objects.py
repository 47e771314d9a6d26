"""Poisoned objects: objects from an API server or proxy that Everynode cannot decode."""

from __future__ import annotations

from typing import Final, NamedTuple


class Poison(NamedTuple):
    """A field of a node called `bad`, or the whole object; whether its name can be decoded."""

    member: bytes = b""
    whole: bytes = b""
    named: bool = True


POISONED: Final = {
    "half of a surrogate pair": Poison(b'"odd":"\\ud800"'),
    "the other half": Poison(b'"odd":"\\udc00x"'),
    "half of a surrogate pair in a key": Poison(b'"\\ud800":1'),
    "a wrong escape": Poison(b'"odd":"\\q"'),
    "a quotation mark and brackets in a string": Poison(b'"odd":"\\"]}\\ud800"'),
    "a zero byte": Poison(b'"odd":"\0"'),
    "bytes that are no UTF-8": Poison(b'"spec":{"taints":[{"key":"\xff","effect":"NoSchedule"}]}'),
    "no number": Poison(b'"odd":NaN'),
    "no end": Poison(b'"odd":-Infinity'),
    "a number beyond all range": Poison(b'"spec":{"unschedulable":1e999}'),
    "an integer beyond all range": Poison(b'"spec":{"unschedulable":%s}' % (b"9" * 5000)),
    "deep lists": Poison(b'"odd":' + b"[" * 200_000 + b"]" * 200_000),
    "deep objects": Poison(b'"odd":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_000),
    "a list where an object belongs": Poison(b'"spec":[]'),
    "a text where a list belongs": Poison(b'"spec":{"taints":"none"}'),
    "no metadata": Poison(whole=b"{}", named=False),
    "metadata that is a number": Poison(whole=b'{"metadata":7}', named=False),
    "metadata that is null": Poison(whole=b'{"metadata":null}', named=False),
    "a name that is a list": Poison(whole=b'{"metadata":{"name":["x"]}}', named=False),
    "a name that is no UTF-8": Poison(whole=b'{"metadata":{"name":"\xff"}}', named=False),
    "a key twice, of the wrong type": Poison(b'"spec":{},"spec":7'),
    "nothing": Poison(whole=b"null", named=False),
    "a number": Poison(whole=b"7", named=False),
}


def poisoned(what: str) -> bytes:
    """Return the object as it appears in a list."""
    poison = POISONED[what]
    metadata = b'{"name":"bad","uid":"uid-bad","resourceVersion":"8"}'
    return poison.whole or b'{"metadata":%s,%s}' % (metadata, poison.member)
