"""What stands in files that people give us, DaemonSets above all, or one line on what is wrong."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from everynode.api import keys
from everynode.api.validation import validate_daemonset
from everynode.cli.errors import UserError
from everynode.sim.rehearsal import prepare

Object = dict[str, Any]

# More than any manifest has; aliases can make one without end of a few lines.
_MOST_VALUES: Final = 1_000_000
_DEEPEST: Final = 200
_TIMES: Final = "tag:yaml.org,2002:timestamp"


class _Loader(yaml.SafeLoader):
    """Reads YAML as kubectl does: what looks like a date is text."""


_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != _TIMES]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_daemonsets(files: Sequence[str]) -> list[Object]:
    """All DaemonSets in some files, in order; raises UserError."""
    return [each for name in files for each in read_objects(name) if is_daemonset(each)]


def read_objects(name: str) -> list[Object]:
    """All objects in a file, in order, with a DaemonSet among them; raises UserError."""
    text = _read(name)
    name = "what is piped in" if name == "-" else name
    found = list(_objects(name, text))
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
        count = itertools.count()
        documents = [_plain(each, count) for each in yaml.load_all(text, _Loader)]
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{name}{line}: this is no YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError):
        raise UserError(f"{name}: this is no YAML") from None
    except RecursionError:
        raise UserError(f"{name}: this is too deep or too long for a manifest") from None
    for document in documents:
        if isinstance(document, dict):
            items = document.get("items") if document.get("kind") == "List" else [document]
            yield from (each for each in items or [] if isinstance(each, dict))


def _plain(value: Any, count: Iterator[int], depth: int = 0) -> Any:
    """Copy what JSON can say, every alias written out; raises ValueError and RecursionError."""
    if depth > _DEEPEST or next(count) > _MOST_VALUES:
        raise RecursionError
    if isinstance(value, dict):
        return {str(key): _plain(each, count, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each, count, depth + 1) for each in value]
    if value is None or isinstance(value, str | int | float):
        return value
    raise ValueError(value)


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
