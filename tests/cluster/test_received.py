from __future__ import annotations

import pytest

from everynode.cluster.rest import Api
from tests.cluster.asking import MAPS, PODS, Cluster, config_map, pod


async def test_yaml_is_read_too(cluster: Cluster) -> None:
    body = b"metadata:\n  name: a\ndata: {x: '1'}\n"
    answer = await cluster.ask("POST", MAPS, body, content_type="application/yaml")
    assert answer.body["data"] == {"x": "1"}


@pytest.mark.parametrize(
    ("validation", "status"), [("Strict", 400), ("Warn", 201), ("Ignore", 201), ("Foo", 422)]
)
async def test_client_chooses_how_strictly_it_is_read(
    cluster: Cluster, validation: str, status: int
) -> None:
    answer = await cluster.post(
        f"{MAPS}?fieldValidation={validation}", {**config_map("a"), "odd": 1}
    )
    assert answer.status == status
    assert ("warning" in answer.headers) is (validation == "Warn")


async def test_member_that_comes_twice_is_refused_when_strict(cluster: Cluster) -> None:
    body = b'{"metadata":{"name":"a"},"data":{"x":"1","x":"2"}}'
    answer = await cluster.ask("POST", f"{MAPS}?fieldValidation=Strict", body)
    assert answer.status == 400
    assert 'duplicate field "data.x"' in answer.message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "json parse error: unexpected end of JSON input"),
        (b"", "json parse error: unexpected end of JSON input (<empty>)"),
        (b"[1]", "couldn't get version/kind"),
        (b'{"data":{"x":1}}', "cannot unmarshal number into Go struct field ConfigMap.data"),
        (b'{"metadata":{"labels":[]}}', "cannot unmarshal array into Go struct field ObjectMeta"),
    ],
)
async def test_body_that_cannot_be_read_is_refused(
    cluster: Cluster, body: bytes, words: str
) -> None:
    answer = await cluster.ask("POST", MAPS, body)
    assert answer.status == 400
    assert words in answer.message


async def test_other_kind_is_refused(cluster: Cluster) -> None:
    answer = await cluster.post(MAPS, {"kind": "Pod", "apiVersion": "v1", **pod("p")})
    assert answer.status == 400
    assert 'Pod in version "v1" cannot be handled as a ConfigMap' in answer.message


async def test_unknown_format_is_refused(cluster: Cluster) -> None:
    answer = await cluster.ask("POST", MAPS, b"x", content_type="text/plain")
    assert answer.status == 415


async def test_nulls_and_empty_lists_are_not_stored(cluster: Cluster) -> None:
    body = pod("p", nodeSelector={}, tolerations=[], volumes=None)
    body["metadata"]["labels"] = None
    made = await cluster.create(PODS, body)
    for key in ("nodeSelector", "volumes"):
        assert key not in made["spec"]
    assert "labels" not in made["metadata"]


def test_server_is_made_without_a_loop() -> None:
    from everynode.clock import SystemClock

    assert Api(clock=SystemClock()).store.version > 1
