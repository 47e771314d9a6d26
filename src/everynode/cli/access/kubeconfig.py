"""Kubeconfig files: add a cluster to one, remove it again, and keep all other entries."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, Final

import yaml

from everynode.api import yaml_text
from everynode.errors import UserError
from everynode.private_files import write_private_file

Object = dict[str, Any]

_LISTS: Final = ("clusters", "users", "contexts")


def add_cluster(path: Path, config: Object) -> bool:
    """Add the one cluster of `config` to a file, atomically.

    Returns whether its context is now the current one. It becomes current if the file has no
    current context; another one stays.
    """
    present = _read(path)
    merged = merge(present, config)
    _write(path, yaml.safe_dump(merged, sort_keys=False))
    return bool(merged["current-context"] == config["current-context"])


def replaced_server(path: Path, config: Object) -> str:
    """Return the server to which a file leads so far by the name of the cluster; may be empty."""
    [name] = [entry["name"] for entry in config["clusters"]]
    entries = [entry for entry in _read(path).get("clusters") or [] if entry.get("name") == name]
    found = entries[0].get("cluster") if entries else None
    return str(found.get("server", "")) if isinstance(found, dict) else ""


def remove_cluster(path: Path, config: Object) -> str:
    """Remove what `add_cluster` added, unless the file now names another server; atomically.

    Returns what was removed, for people, or nothing. A file that held nothing else is deleted; a
    link stays, and what it points to.
    """
    present = _read(path)
    if not all(entry in (present.get("clusters") or []) for entry in config["clusters"]):
        return ""  # removed by the user, or replaced by another `everynode up`
    for key in _LISTS:
        names = [entry["name"] for entry in config[key]]
        present[key] = [entry for entry in present.get(key) or [] if entry.get("name") not in names]
    if not any(present[key] for key in _LISTS) and not path.is_symlink():
        path.unlink(missing_ok=True)
        return f"the kubeconfig {path}"
    if present.get("current-context") == config["current-context"]:
        present["current-context"] = ""
    _write(path, yaml.safe_dump(present, sort_keys=False))
    return f"the context {config['current-context']} from the kubeconfig {path}"


def check_writable(path: Path) -> None:
    """Raise UserError if a cluster cannot be added; checked before the cluster is started."""
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
        # A device may be endless, and must not be replaced by a file.
        if not stat.S_ISREG(path.stat().st_mode):
            raise _refusal("use", path, "it is not a file")
        text = path.read_bytes()
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _refusal("read", path, _why(error)) from None
    try:
        found = yaml_text.load(text)
    except yaml_text.YamlError as error:
        raise UserError(
            f"{path} is not a kubeconfig, not even YAML ({error}); "
            "choose another file with --kubeconfig, or remove it"
        ) from None
    if found is None:
        return {}
    lists = [found.get(key) or [] for key in _LISTS] if isinstance(found, dict) else [None]
    if not all(isinstance(each, list) and all(isinstance(e, dict) for e in each) for each in lists):
        raise UserError(
            f"{path} is not a kubeconfig; choose another file with --kubeconfig, or remove it"
        )
    return dict(found)


def _write(path: Path, text: str) -> None:
    try:
        write_private_file(path.resolve(), text.encode())
    except OSError as error:
        raise _refusal("write", path, _why(error)) from None


def _refusal(verb: str, path: Path, why: str) -> UserError:
    return UserError(
        f"cannot {verb} the kubeconfig {path}: {why}; choose another with --kubeconfig"
    )


def _why(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
