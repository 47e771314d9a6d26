"""Every manifest in the original documents is accepted as it is printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from everynode.api import keys
from everynode.api.conversion import convert
from everynode.api.daemonset import IntOrPercent
from everynode.api.validation import validate_daemonset, validate_template
from everynode.api.versions import decode_daemonset

Object = dict[str, Any]
SEEDS = Path(__file__).parent / "seeds"
MANIFESTS = sorted(path for path in SEEDS.glob("*.yaml") if path.stem != "affinity-draft")


def read(path: Path) -> Object:
    """The manifest; what a fragment leaves out is filled in with as little as possible."""
    made: Object = yaml.safe_load(path.read_text().replace("<container-name>", "agent"))
    made.setdefault("metadata", {}).setdefault("name", "sample")
    if made.get("spec") is None:
        made["spec"] = {}
    spec = made["spec"]
    spec.setdefault("selector", {"matchLabels": {"app": "sample"}})
    template = spec.setdefault("template", {})
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    labels.update(spec["selector"]["matchLabels"])
    containers = template.setdefault("spec", {}).setdefault("containers", [{"name": "agent"}])
    containers[0].setdefault("image", "agent:1")
    return made


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_a_printed_manifest_is_accepted(path: Path) -> None:
    manifest = read(path)
    if path.stem == "native-nginx":
        del manifest["spec"]["template"]["spec"]["tolerations"]
    assert validate_daemonset(manifest) == []
    assert decode_daemonset(manifest).faults == ()


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
@pytest.mark.parametrize("version", [keys.V1ALPHA1, keys.V1BETA1])
def test_a_printed_manifest_is_accepted_in_every_advanced_version(path: Path, version: str) -> None:
    manifest = convert(read(path), version).made
    manifest["spec"]["template"]["spec"].pop("tolerations", None)
    assert validate_daemonset(manifest) == []


def test_what_kubernetes_refuses_is_refused_in_its_words() -> None:
    (fault,) = validate_daemonset(read(SEEDS / "native-nginx.yaml"))
    assert str(fault) == (
        'spec.template.spec.tolerations[0].effect: Unsupported value: "NoScheduler": '
        'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
    )


def test_both_spellings_of_surging_mean_the_same() -> None:
    strategies = [
        decode_daemonset(read(SEEDS / f"{name}-surging.yaml")).strategy
        for name in ("advanced", "article")
    ]
    assert strategies[0] == strategies[1]
    assert strategies[0].max_surge == IntOrPercent(30, percent=True)
    assert strategies[0].max_unavailable == IntOrPercent(0)


def test_a_draft_of_an_affinity_is_refused_where_it_is_wrong() -> None:
    affinity = yaml.safe_load((SEEDS / "affinity-draft.yaml").read_text())
    template = {"spec": {"containers": [{"name": "a", "image": "a"}], "affinity": affinity}}
    here = "template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    assert [fault.path for fault in validate_template(template)] == [here]
