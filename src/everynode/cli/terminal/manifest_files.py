"""Manifest files: read DaemonSets and other objects from YAML; what is wrong is a UserError."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from everynode.api import keys, yaml_text
from everynode.api.validation import validate_daemonset
from everynode.errors import UserError
from everynode.forecast.prepared_manifest import prepare_manifest

Object = dict[str, Any]

# Enough for `kubectl get daemonsets -A -o yaml` of a large cluster.
_MAX_BYTES: Final = 32 * 1024 * 1024


def read_daemonsets(files: Sequence[str]) -> list[Object]:
    """All DaemonSets in some files, in order; raises UserError."""
    return [each for name in files for each in read_objects(name) if is_daemonset(each)]


def read_objects(name: str) -> list[Object]:
    """All objects in a file, in order, with a valid DaemonSet among them; raises UserError."""
    found = read_unchecked(name)
    for each in found:
        if is_daemonset(each):
            _require_valid(display_name(name), each)
    return found


def read_unchecked(name: str) -> list[Object]:
    """All objects in a file, in order, with a DaemonSet among them; raises UserError."""
    found = list(_objects(display_name(name), _read(name)))
    if not any(is_daemonset(each) for each in found):
        raise UserError(f"{display_name(name)} holds no DaemonSet")
    return found


def display_name(name: str) -> str:
    """The name of a file for messages."""
    return "standard input" if name == "-" else name


def is_daemonset(manifest: Object) -> bool:
    """Whether the object is a DaemonSet, of any API version."""
    return manifest.get("kind") == keys.KIND


def _read(name: str) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read(_MAX_BYTES + 1)
        # A pipe is read to its end, as kubectl does; the limit ends endless devices.
        with Path(name).open("rb") as file:
            return file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"cannot read {name}: {error.strerror}") from None
    except ValueError as error:  # a zero byte in the name
        raise UserError(f"cannot read {name!r}: {error}") from None


def _objects(name: str, text: bytes) -> Iterator[Object]:
    """Every object of a file; the items of a List one by one."""
    try:
        documents = [_json_value(each) for each in yaml_text.load_all(text, most_bytes=_MAX_BYTES)]
    except yaml_text.YamlError as error:
        line = f", line {error.line + 1}" if error.line is not None else ""
        raise UserError(f"{name}{line}: not valid YAML: {error.problem}") from None
    except ValueError as error:
        raise UserError(f"{name}: not a manifest: {error}") from None
    for document in documents:
        if isinstance(document, dict):
            items = document.get("items") if document.get("kind") == "List" else [document]
            if not isinstance(items or [], list):
                raise UserError(f"{name}: items: not a list")
            yield from (each for each in items or [] if isinstance(each, dict))


def _json_value(value: Any) -> Any:
    """Copy a value with YAML aliases written out; raises ValueError for what JSON cannot hold."""
    if isinstance(value, dict):
        return {str(key): _json_value(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_json_value(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"JSON has no number {value}")
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise ValueError(f"a number of {value.bit_length()} bits is longer than any field")
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(f"{type(value).__name__} is not a JSON type")


def _require_valid(name: str, manifest: Object) -> None:
    """Raise UserError for the first field that an API server would refuse."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise UserError(f"{name}: metadata.name: the DaemonSet has no name")
    if not isinstance(manifest.get("spec"), dict):
        raise UserError(f"{name}: spec: the DaemonSet has none")
    faults = validate_daemonset(prepare_manifest(manifest))
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise UserError(f"{name}: {faults[0]}{more}")
