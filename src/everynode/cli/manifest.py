"""What stands in files that people give us, DaemonSets above all, or one line on what is wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from everynode.api import keys
from everynode.api.validation import validate_daemonset
from everynode.cli.errors import UserError
from everynode.sim.rehearsal import prepare

Object = dict[str, Any]


def read_daemonsets(files: Sequence[str]) -> list[Object]:
    """All DaemonSets in some files, in order; raises UserError."""
    return [each for name in files for each in read_objects(name) if is_daemonset(each)]


def read_objects(name: str) -> list[Object]:
    """All objects in a file, in order, with a DaemonSet among them; raises UserError."""
    found = list(_objects(name, _read(name)))
    here = [each for each in found if is_daemonset(each)]
    if not here:
        raise UserError(f"{name} holds no DaemonSet")
    for each in here:
        _check(name, each)
    return found


def is_daemonset(manifest: Object) -> bool:
    """Whether it is a DaemonSet of whatever version."""
    return manifest.get("kind") == keys.KIND


def _read(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"cannot read {name}: it is not text") from None


def _objects(name: str, text: str) -> Iterator[Object]:
    """Every object of a file; the parts of a List one by one."""
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{name}{line}: this is no YAML: {error.problem}") from None
    except yaml.YAMLError:
        raise UserError(f"{name}: this is no YAML") from None
    for document in documents:
        if isinstance(document, dict):
            items = document.get("items") if document.get("kind") == "List" else [document]
            yield from (each for each in items or [] if isinstance(each, dict))


def _check(name: str, manifest: Object) -> None:
    """Refuse what an API server would refuse, in words that say where."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise UserError(f"{name}: metadata.name: the DaemonSet has no name")
    if not isinstance(manifest.get("spec"), dict):
        raise UserError(f"{name}: spec: the DaemonSet has none")
    faults = validate_daemonset(prepare(manifest))
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise UserError(f"{name}: {faults[0]}{more}")
