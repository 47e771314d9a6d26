"""Discovery: the embedded server serves nothing that a real server does not describe alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agreement.question import get
from tests.agreement.servers import Server

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.timeout(300),
    pytest.mark.usefixtures("installed"),
]

Object = dict[str, Any]

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
# Said of every resource, and different for every server.
_OWN = ("storageVersionHash", "description")


async def read(server: Server, path: str, accept: str = "application/json") -> Any:
    answer = await server.ask(get(path, accept=accept))
    assert answer.status == 200, answer.raw
    return answer.body


def plain(value: Any) -> Any:
    """Without what is each server's own, and where the order says nothing, in one order."""
    if isinstance(value, dict):
        return {
            key: sorted(item) if key in ("verbs", "required") else plain(item)
            for key, item in value.items()
            if key not in _OWN
        }
    return [plain(item) for item in value] if isinstance(value, list) else value


def missing(ours: list[Object], real: list[Object], key: str) -> list[Object]:
    """What ours says and the real one does not, beside what that says."""
    known = {each[key]: plain(each) for each in real}
    return [
        {"ours": plain(each), "real": known.get(each[key])}
        for each in ours
        if plain(each) != known.get(each[key])
    ]


async def group_versions(server: Server) -> list[str]:
    groups = (await read(server, "/apis"))["groups"]
    found = [version["groupVersion"] for group in groups for version in group["versions"]]
    return ["/api/v1", *(f"/apis/{each}" for each in found)]


async def test_resources_are_listed_alike(real: Server, ours: Server) -> None:
    for path in await group_versions(ours):
        mine, theirs = await read(ours, path), await read(real, path)
        assert not missing(mine.pop("resources"), theirs.pop("resources"), "name")
        # The real one does not say for the core group what version the list itself is of.
        assert {"apiVersion": "v1", **theirs} == mine


async def test_groups_are_listed_alike(real: Server, ours: Server) -> None:
    mine, theirs = await read(ours, "/apis"), await read(real, "/apis")
    assert not missing(mine.pop("groups"), theirs.pop("groups"), "name")
    assert mine == theirs
    for path in await group_versions(ours):
        if path.startswith("/apis/"):
            group = path.rpartition("/")[0]
            assert await read(ours, group) == await read(real, group)
    core, real_core = await read(ours, "/api"), await read(real, "/api")
    assert (core["kind"], core["versions"]) == (real_core["kind"], real_core["versions"])


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_discovery_in_the_older_version_agrees(real: Server, ours: Server, path: str) -> None:
    accept = f"{AGGREGATED.format('v2beta1')},application/json"
    assert (await read(ours, path, accept))["kind"] == (await read(real, path, accept))["kind"]


@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_aggregated_discovery_agrees(real: Server, ours: Server, path: str) -> None:
    accept = AGGREGATED.format("v2")
    answers = [await server.ask(get(path, accept=accept)) for server in (ours, real)]
    assert answers[0].headers == answers[1].headers
    mine, theirs = [answer.body for answer in answers]
    known = {group["metadata"].get("name", ""): group for group in theirs["items"]}
    for group in mine["items"]:
        same = known[group["metadata"].get("name", "")]
        assert [v["version"] for v in group["versions"]] == [v["version"] for v in same["versions"]]
        for here, there in zip(group["versions"], same["versions"], strict=True):
            assert here["freshness"] == there["freshness"]
            compare_resources(here["resources"], there["resources"])


def compare_resources(mine: list[Object], theirs: list[Object]) -> None:
    known = {each["resource"]: each for each in theirs}
    for each in mine:
        same = known[each["resource"]]
        parts, real_parts = (one.pop("subresources", []) for one in (each, same))
        assert not missing(parts, real_parts, "subresource")
        assert plain(each) == plain(same)


async def test_versions_are_the_same(real: Server, ours: Server) -> None:
    mine, theirs = await read(ours, "/version"), await read(real, "/version")
    assert set(mine) == set(theirs)
    for key in ("major", "minor", "emulationMinor", "minCompatibilityMinor"):
        assert mine[key] == theirs[key]
    for path in ("/healthz", "/livez", "/readyz"):
        assert await read(ours, path) == await read(real, path) == "ok"


async def test_schemas_are_described_alike(real: Server, ours: Server) -> None:
    for path in await group_versions(ours):
        mine, theirs = [await read(server, f"/openapi/v3{path}") for server in (ours, real)]
        for address, operations in mine["paths"].items():
            for method, operation in operations.items():
                if method == "parameters":
                    continue
                same = theirs["paths"][address][method]
                for key in ("x-kubernetes-action", "x-kubernetes-group-version-kind"):
                    assert operation[key] == same[key], (address, method)
        schemas = theirs["components"]["schemas"]
        described = mine["components"]["schemas"]
        assert not [name for name in described if bare(described[name]) != bare(schemas[name])]


def bare(schema: Any) -> Any:
    """A schema without words, without a mark that no client reads, and with references alike."""
    if isinstance(schema, list):
        return [bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    made = {
        key: sorted(value) if key == "required" and isinstance(value, list) else bare(value)
        for key, value in schema.items()
        if key != "x-kubernetes-unions" and not (key == "description" and isinstance(value, str))
    }
    if made.get("x-kubernetes-int-or-string"):
        made.pop("anyOf", None)
    whole = made.get("allOf")
    if isinstance(whole, list) and len(whole) == 1:
        made = {key: value for key, value in made.items() if key != "allOf"} | whole[0]
    return made


async def test_documents_are_indexed_alike(real: Server, ours: Server) -> None:
    mine, theirs = [await read(server, "/openapi/v3") for server in (ours, real)]
    assert set(mine["paths"]) <= set(theirs["paths"])
    for entry in mine["paths"].values():
        url = entry["serverRelativeURL"]
        assert json.dumps((await read(ours, url))["openapi"]) == '"3.0.0"'
