"""The recorded responses are still those of a real API server."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from everynode.kube.requests import APPLY_PATCH, MERGE_PATCH
from everynode.localkube.control_plane import ControlPlane
from tests.support.paths import ANSWERS as RECORDED
from tests.support.real_server import Answer, RealApiServer, collection
from tests.support.recorded_answers import APPLIES, GENERATION

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

Object = dict[str, Any]

FOLDER = RECORDED
PATCHES = json.loads((FOLDER / "patches.json").read_text())
BODIES = json.loads((FOLDER / "bodies.json").read_text())

CUSTOM = {"Widget": "widgets", "Gadget": "gadgets"}


@pytest.fixture(scope="session")
def real(api_server: ControlPlane) -> RealApiServer:
    made = RealApiServer(api_server)
    _define(made)
    return made


def make(real: RealApiServer, manifest: Object) -> Answer:
    return real.ask("POST", collection(manifest), manifest)


def _define(real: RealApiServer) -> None:
    """Install the custom kinds that the answers are about, and wait until they are served."""
    schemas = {s["steps"][0]["body"]["kind"]: s["schema"] for s in APPLIES if "schema" in s}
    for kind, plural in CUSTOM.items():
        version = {
            "name": "v1",
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schemas[kind]},
            "subresources": {"status": {}},
        }
        names = {"plural": plural, "kind": kind}
        spec = {
            "group": "example.test",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        }
        crd = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.example.test"},
            "spec": spec,
        }
        made = real.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        assert made.code == 201, made.body
        probe = {
            "apiVersion": "example.test/v1",
            "kind": kind,
            "metadata": {"name": "probe"},
            "spec": {},
        }
        path = f"{collection(probe)}/probe?fieldManager=m&dryRun=All"
        served = (real.ask("PATCH", path, probe, APPLY_PATCH).code == 201 for _ in range(3000))
        assert any(served)


def bare(obj: Object, *, keep_fields: bool) -> Object:
    """The object without what is different every time."""
    obj = copy.deepcopy(obj)
    metadata = obj["metadata"]
    for key in ("resourceVersion", "creationTimestamp", "generation"):
        metadata.pop(key, None)
    metadata["uid"] = "uid"
    for entry in metadata.get("managedFields", []):
        if "time" in entry:
            entry["time"] = "2026-01-01T00:00:00Z"
    if "managedFields" in metadata:
        # They are sorted by time, and how many seconds a scenario takes is not its point.
        metadata["managedFields"].sort(key=json.dumps)
    if not keep_fields:
        metadata.pop("managedFields", None)
        metadata.get("annotations", {}).pop(GENERATION, None)
        if metadata.get("annotations") == {}:
            del metadata["annotations"]
    if obj["kind"] == "Service":
        for key in ("clusterIP", "clusterIPs"):
            obj["spec"].pop(key, None)
    return obj


@pytest.fixture(scope="session")
def bases(real: RealApiServer) -> dict[str, str]:
    """The objects that are patched, and where they are."""
    found = {}
    for name, base in PATCHES["bases"].items():
        obj = copy.deepcopy(base["object"])
        del obj["metadata"]["uid"]
        made = make(real, obj)
        assert made.code == 201, made.body
        found[name] = f"{collection(obj)}/{obj['metadata']['name']}"
    return found


def outcome(case: Object) -> Object:
    obj: Object = copy.deepcopy(PATCHES["bases"][case["base"]]["object"])
    changes = [(pointer, None) for pointer in case.get("gone", ())]
    for pointer, value in [*changes, *case["changes"].items()]:
        *steps, last = [s.replace("~1", "/").replace("~0", "~") for s in pointer.split("/")[1:]]
        parent = obj
        for step in steps:
            parent = parent[step]
        if value is None:
            del parent[last]
        else:
            parent[last] = value
    return obj


@pytest.mark.parametrize("case", PATCHES["cases"], ids=lambda case: case["body"][:60])
def test_patches_are_answered_as_recorded(
    real: RealApiServer, bases: dict[str, str], case: Object
) -> None:
    query = f"?dryRun=All&fieldManager=m&fieldValidation={case.get('validation', '')}"
    answer = real.ask("PATCH", bases[case["base"]] + query, case["body"], case["media"])
    if "error" in case:
        assert answer.code == case["error"]["code"]
        assert answer.body["message"].endswith(case["error"]["message"].removeprefix("…"))
    else:
        assert answer.code == 200, answer.body
        assert bare(answer.body, keep_fields=False) == outcome(case)


@pytest.mark.parametrize("case", [c for c in BODIES["cases"] if "error" in c])
def test_bodies_are_refused_as_recorded(real: RealApiServer, case: Object) -> None:
    group, version = case["group"], case["version"]
    address = {"apiVersion": f"{group}/{version}" if group else version, "kind": case["kind"]}
    path = f"{collection(address)}?dryRun=All&fieldValidation={case['validation']}"
    answer = real.ask("POST", path, case["body"], case.get("media", "application/json"))
    assert answer.code == case["error"]["code"]
    assert answer.body["message"].startswith(case["error"]["message"])


@pytest.mark.parametrize("scenario", APPLIES, ids=lambda scenario: scenario["name"])
def test_writes_and_applies_are_answered_as_recorded(real: RealApiServer, scenario: Object) -> None:
    first = scenario["steps"][0]["body"]
    one = f"{collection(first)}/{first['metadata']['name']}"
    real.ask("PATCH", one, {"metadata": {"finalizers": None}}, MERGE_PATCH)
    real.ask("DELETE", one, {"gracePeriodSeconds": 0})
    for step in scenario["steps"]:
        answer = _write(real, one, step)
        if "error" in step:
            assert answer.code == step["error"]["code"]
            assert answer.body["message"] == step["error"]["message"]
        else:
            assert answer.code in (200, 201), answer.body
            assert bare(answer.body, keep_fields=True) == bare(step["after"], keep_fields=True)


def _write(real: RealApiServer, one: str, step: Object) -> Answer:
    query = f"?fieldManager={step['manager']}" + ("&force=true" if step.get("force") else "")
    if step["op"] == "create":
        return real.ask("POST", one.rsplit("/", 1)[0] + query, step["body"])
    sub = f"/{step['subresource']}" if "subresource" in step else ""
    media = APPLY_PATCH if step["op"] == "apply" else step["media"]
    return real.ask("PATCH", one + sub + query, step["body"], media)
