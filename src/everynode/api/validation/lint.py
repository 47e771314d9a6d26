"""Lint: what is wrong with a manifest of a DaemonSet, and what is valid but risky in a rollout."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Final

import msgspec

from everynode.api import keys
from everynode.api.daemonset import DaemonSet, UpdateStrategyType
from everynode.api.image import full_reference
from everynode.api.types import ADVANCED_DAEMONSET, NATIVE_DAEMONSET
from everynode.api.validation.accessors import number, section, sections, text
from everynode.api.validation.daemonset import validate_daemonset
from everynode.api.validation.field_errors import Object
from everynode.api.validation.field_types import unknown_fields
from everynode.api.versions import decode_daemonset

_POD: Final = "spec.template.spec"
_ROLLING: Final = "spec.updateStrategy.rollingUpdate"


class Severity(enum.StrEnum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"


class LintFinding(msgspec.Struct, frozen=True):
    """One thing that should be changed in a manifest."""

    severity: Severity
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.severity.value}: {self.path}: {self.message}"


def lint_daemonset(manifest: Object) -> list[LintFinding]:
    """Return the errors of a manifest, or its warnings if an API server would accept it."""
    errors = [*unknown_field_findings(manifest), *_invalid(manifest)]
    return errors or list(_warnings(manifest))


def unknown_field_findings(manifest: Object) -> Iterator[LintFinding]:
    """Yield an error for each field that an API server does not know."""
    native = manifest.get("apiVersion") == keys.APPS_V1
    written = {key: value for key, value in manifest.items() if key != "status"}
    for field in unknown_fields(written, NATIVE_DAEMONSET if native else ADVANCED_DAEMONSET):
        meant = f"; did you mean {field.suggestion}?" if field.suggestion else ""
        message = f"there is no such field{meant}"
        yield LintFinding(Severity.ERROR, field.path, message)


def _invalid(manifest: Object) -> Iterator[LintFinding]:
    metadata = manifest.get("metadata")
    if isinstance(metadata, dict) and "namespace" not in metadata:
        manifest = {**manifest, "metadata": {**metadata, "namespace": "default"}}
    for error in validate_daemonset(manifest):
        yield LintFinding(Severity.ERROR, error.path, error.message)


# --- Valid, but risky ----------------------------------------------------------------------------


def _warnings(manifest: Object) -> Iterator[LintFinding]:
    metadata = {"namespace": "default", **manifest["metadata"], "uid": "none"}
    ds = decode_daemonset({**manifest, "metadata": metadata})
    pod = section(section(manifest["spec"], "template") or {}, "spec") or {}
    if ds.strategy.type is UpdateStrategyType.ROLLING:
        yield from _rollout_risks(ds)
        if ds.strategy.max_surge.value:
            yield from _surge_risks(pod)
    yield from _template_risks(pod)


def _warn(path: str, message: str) -> LintFinding:
    return LintFinding(Severity.WARNING, path, message)


def _rollout_risks(ds: DaemonSet) -> Iterator[LintFinding]:
    strategy = ds.strategy
    if not ds.min_ready_seconds:
        yield _warn(
            "spec.minReadySeconds",
            "is 0: a pod counts as available the moment it is Ready; give it the time in which a "
            "bad version would show, such as 30",
        )
    if strategy.partition.value and not strategy.partition.percent:
        yield _warn(
            f"{_ROLLING}.partition",
            "is a number of nodes: every node that joins means one more that is updated; "
            "a percentage keeps the canary as large as it is",
        )
    if strategy.max_unavailable.percent and strategy.max_unavailable.value >= 100:
        yield _warn(f"{_ROLLING}.maxUnavailable", "is 100%: all nodes may be down at once")


def _surge_risks(pod: Object) -> Iterator[LintFinding]:
    for path, container in sections(pod, "containers", _POD):
        for where, port in sections(container, "ports", path):
            taken = number(port, "hostPort")
            if taken:
                yield _warn(
                    f"{where}.hostPort",
                    f"host port {taken} is taken by the old pod, so that no surge pod can start; "
                    f"use maxUnavailable instead of {_ROLLING}.maxSurge",
                )
    if pod.get("hostNetwork") is True:
        yield _warn(
            f"{_POD}.hostNetwork",
            "with maxSurge both pods of a node share its network: "
            "a port that the old pod listens on is taken for the new one",
        )


def _template_risks(pod: Object) -> Iterator[LintFinding]:
    for path, container in sections(pod, "containers", _POD):
        image = text(container, "image")
        if image and full_reference(image).endswith(":latest"):
            yield _warn(
                f"{path}.image",
                f"{image} has no fixed version: nodes may run different ones, and there is "
                "no way back; name a tag or a digest",
            )
        if not section(container, "readinessProbe"):
            yield _warn(
                f"{path}.readinessProbe",
                "is missing: the container counts as ready as soon as it runs, "
                "so that a version that does not work is rolled out everywhere",
            )
