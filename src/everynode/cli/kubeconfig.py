"""Adding a cluster to a kubeconfig file without touching what else is in it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Final

import yaml

from everynode.cli.errors import UserError

Object = dict[str, Any]

_LISTS: Final = ("clusters", "users", "contexts")


def add(path: Path, config: Object) -> bool:
    """Put the one cluster of `config` into a file, at once or not at all.

    Returns whether its context is now the current one: it becomes so in a new file, never in one
    where somebody has chosen another.
    """
    present = _read(path)
    merged = merge(present, config)
    _write(path, yaml.safe_dump(merged, sort_keys=False))
    return bool(merged["current-context"] == config["current-context"])


def check(path: Path) -> None:
    """Raise UserError where a cluster could not be added, before it is started in vain."""
    _read(path)
    folder = path.resolve().parent
    if not folder.is_dir():
        raise _refusal("write", path, f"there is no folder {folder}")
    if not os.access(folder, os.W_OK):
        raise _refusal("write", path, f"the folder {folder} cannot be written to")


def merge(present: Object, config: Object) -> Object:
    """A kubeconfig with the entries of both; those of the same name are replaced."""
    merged: Object = {"apiVersion": "v1", "kind": "Config", **present}
    for key in _LISTS:
        names = [entry["name"] for entry in config[key]]
        kept = [entry for entry in present.get(key) or [] if entry.get("name") not in names]
        merged[key] = [*kept, *config[key]]
    if not present.get("current-context"):
        merged["current-context"] = config["current-context"]
    return merged


def _read(path: Path) -> Object:
    try:
        # Devices may have no end, and must not be replaced by a file.
        if not stat.S_ISREG(path.stat().st_mode):
            raise _refusal("use", path, "it is not a file")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise _refusal("read", path, "it is not text") from None
    except OSError as error:
        raise _refusal("read", path, _why(error)) from None
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        found = text
    if found is None:
        return {}
    lists = [found.get(key) or [] for key in _LISTS] if isinstance(found, dict) else [None]
    if not all(isinstance(each, list) and all(isinstance(e, dict) for e in each) for each in lists):
        raise UserError(
            f"{path} is not a kubeconfig; choose another file with --kubeconfig, or remove it"
        )
    return dict(found)


def _write(path: Path, text: str) -> None:
    target = path.resolve()
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise _refusal("write", path, _why(error)) from None


def _refusal(verb: str, path: Path, why: str) -> UserError:
    return UserError(
        f"cannot {verb} the kubeconfig {path}: {why}; choose another with --kubeconfig"
    )


def _why(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
