"""`everynode plan -f` foresees what `kubectl apply` makes of an object that others changed, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everynode.cli.planning.applied import apply_manifest
from everynode.cli.planning.change import changed_fields
from tests.support.kubectl_session import Terminal
from tests.support.stage import daemonset

Object = dict[str, Any]
pytestmark = pytest.mark.timeout(600)
KINDS = {"apps/v1": "daemonsets.apps", "apps.kruise.io/v1beta1": "daemonsets.apps.kruise.io"}
# How the object was declared first, and how it is applied later.
DECLARED = {
    "apply": "apply",
    "apply --server-side": "apply --server-side --force-conflicts",
    "create": "apply",
}


def first(version: str) -> Object:
    """A manifest with every sort of list."""
    ports = [{"containerPort": 53, "protocol": each, "name": each.lower()} for each in PROTOCOLS]
    container = {
        "name": "agent",
        "image": "agent:v1",
        "args": ["one", "two"],
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
        "ports": ports,
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    spec = {
        "containers": [container, {"name": "side", "image": "side:v1"}],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "tolerations": [{"operator": "Exists"}],
    }
    return daemonset(api_version=version, template={"spec": spec})


PROTOCOLS = ("UDP", "TCP")


def second(version: str) -> Object:
    """Another container, other variables in another order, another volume."""
    made = first(version)
    spec = made["spec"]["template"]["spec"]
    agent = spec["containers"][0]
    agent |= {"image": "agent:v2", "args": ["two"]}
    agent["env"] = [{"name": "C", "value": "3"}, {"name": "B", "value": "2"}]
    spec["containers"] = [agent, {"name": "third", "image": "third:v1"}]
    spec["volumes"] = [{"name": "more", "emptyDir": {}}, *spec["volumes"]]
    return made


def injected(live: Object) -> Object:
    """The patch of another writer, who adds a container, a variable, a mount and a volume."""
    spec = json.loads(json.dumps(live["spec"]["template"]["spec"]))
    agent = spec["containers"][0]
    agent["env"].append({"name": "ADDED", "value": "9"})
    agent["volumeMounts"].append({"name": "added", "mountPath": "/added"})
    spec["volumes"].append({"name": "added", "emptyDir": {}})
    containers = [{"name": "added", "image": "added:v1"}, *spec["containers"]]
    return {"spec": {"template": {"spec": {**spec, "containers": containers}}}}


class Shell:
    """kubectl in one namespace, with JSON in and out."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        old = "1.28" in str(terminal.kubectl)
        self._space = f"apply-{terminal.kubeconfig.parent.name}-{'old' if old else 'new'}"
        self._terminal.type(f"kubectl create namespace {self._space}", "default")

    def type(self, line: str) -> str:
        typed = self._terminal.type(line, self._space)
        assert typed.code == 0, str(typed)
        return typed.output

    def send(self, verb: str, manifest: Object) -> str:
        file = self._terminal.home / f"{self._space}.json"
        file.write_text(json.dumps(manifest))
        return self.type(f"kubectl {verb} -f {file} 2>/dev/null")


def compare(shell: Shell, version: str, declared: str) -> None:
    kind = KINDS[version]
    shown = "-o json --show-managed-fields"
    shell.send(declared, first(version))
    patch = json.dumps(injected(json.loads(shell.type(f"kubectl get {kind} agent -o json"))))
    shell.type(f"kubectl patch {kind} agent --type=merge --field-manager=injector -p '{patch}'")
    live = json.loads(shell.type(f"kubectl get {kind} agent {shown}"))
    for manifest in (first(version), second(version)):
        applied = shell.send(f"{DECLARED[declared]} --dry-run=server {shown}", manifest)
        real = json.loads(applied)
        foreseen = apply_manifest(live, manifest)
        assert changed_fields(real, foreseen) == []
        assert list_names(real) == list_names(foreseen)
    assert changed_fields(live, apply_manifest(live, second(version)))
    shell.type(f"kubectl delete {kind} agent")


def list_names(ds: Object) -> list[list[str]]:
    """The names in each list, in their order."""
    spec = ds["spec"]["template"]["spec"]
    agent = next(each for each in spec["containers"] if each["name"] == "agent")
    lists = (spec["containers"], spec["volumes"], agent["env"], agent["volumeMounts"])
    return [[each["name"] for each in items] for items in lists]


CASES = [(version, declared) for version in KINDS for declared in DECLARED]


@pytest.mark.parametrize(("version", "declared"), CASES)
def test_a_plan_foresees_what_kubectl_applies(
    terminal: Terminal, version: str, declared: str
) -> None:
    compare(Shell(terminal), version, declared)


@pytest.mark.kubernetes
@pytest.mark.parametrize(("version", "declared"), CASES)
def test_a_plan_foresees_it_on_real_kubernetes(
    terminal: Terminal, kubernetes: Path, version: str, declared: str
) -> None:
    compare(Shell(Terminal(terminal.kubectl, kubernetes, terminal.home)), version, declared)
