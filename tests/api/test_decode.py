from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from everynode.api.decode import (
    DecodeError,
    encode_without_nulls,
    read_key_and_uid,
    require_identity,
)
from everynode.api.objects import Pod

Json = dict[str, Any]


@pytest.mark.parametrize("missing", ["name", "namespace", "uid"])
def test_an_object_that_no_request_can_be_made_about_is_refused(missing: str) -> None:
    body: Json = {"metadata": {"name": "a", "namespace": "default", "uid": "c"}}
    decode = require_identity(msgspec.json.Decoder(Pod).decode)
    assert decode(json.dumps(body).encode()).metadata.namespace == "default"
    del body["metadata"][missing]
    with pytest.raises(DecodeError, match="without a readable name, namespace or uid"):
        decode(json.dumps(body).encode())


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"metadata":{"name":"a","namespace":"b","uid":"c"},"spec":"wrong"}', ("b/a", "c")),
        (b'{"metadata":{"name":"a","uid":7}}', ("a", "7")),
        (b'{"metadata":{"name":["a"]}}', ("", "")),
        (b"nonsense", ("", "")),
        (b"{}", ("", "")),
    ],
)
def test_an_object_that_cannot_be_decoded_is_identified(
    body: bytes, found: tuple[str, str]
) -> None:
    assert read_key_and_uid(body) == found


def test_nulls_inside_the_data_of_a_revision_stay() -> None:
    body = b'{"metadata":{"labels":null},"data":{"a":null}}'
    assert json.loads(encode_without_nulls(body)) == {"metadata": {}, "data": {"a": None}}
