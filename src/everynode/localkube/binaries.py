"""Binaries of Kubernetes: in KUBEBUILDER_ASSETS, or in the cache of hack/kubernetes/build."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from everynode.api.types import KUBERNETES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# What hack/kubernetes/go.mod pins.
RELEASE = KUBERNETES
# What hack/kubernetes-1.36/go.mod pins.
PREVIOUS_RELEASE = "v1.36.3"

CONTROL_PLANE = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubectl",
)
NODE = ("kubelet",)


class BinariesMissingError(Exception):
    """The Kubernetes binaries are not on this machine; the message says how to get them."""


def find(needed: Iterable[str] = CONTROL_PLANE, environ: Mapping[str, str] | None = None) -> Path:
    """The folder that holds all the needed programs."""
    env = os.environ if environ is None else environ
    names = tuple(needed)
    assets = env.get("KUBEBUILDER_ASSETS")
    cache = cache_folder(RELEASE, env)
    for folder in (Path(assets) if assets else None, cache):
        if folder is not None and not missing(folder, names):
            return folder
    raise BinariesMissingError(_explain(assets, cache, names))


def find_previous(program: str, environ: Mapping[str, str] | None = None) -> Path:
    """That program of the release before: kube-apiserver or kube-controller-manager."""
    folder = cache_folder(PREVIOUS_RELEASE, os.environ if environ is None else environ)
    if missing(folder, (program,)):
        raise BinariesMissingError(
            f"{program} {PREVIOUS_RELEASE} is not in {folder}: "
            f"run hack/kubernetes-1.36/build {program}."
        )
    return folder / program


def cache_folder(release: str, environ: Mapping[str, str]) -> Path:
    """Where the scripts hack/*/build keep the programs of a release."""
    root = environ.get("EVERYNODE_CACHE")
    if root:
        return Path(root) / "kubernetes" / release / "bin"
    home = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or Path.home(), ".cache")
    return Path(home) / "everynode" / "kubernetes" / release / "bin"


def missing(folder: Path, names: Iterable[str]) -> list[str]:
    """The named programs that are not in the folder."""
    return [name for name in names if not os.access(folder / name, os.X_OK)]


def _explain(assets: str | None, cache: Path, names: tuple[str, ...]) -> str:
    looked = [f"{cache} lacks {', '.join(missing(cache, names))}"]
    if assets:
        absent = ", ".join(missing(Path(assets), names))
        looked.insert(0, f"KUBEBUILDER_ASSETS={assets} lacks {absent}")
    return (
        f"The programs of a real Kubernetes were not found ({'; '.join(looked)}). "
        f"Either run `make kubernetes`, which builds {RELEASE} once per machine (it needs Go 1.26 "
        f"or newer), or set KUBEBUILDER_ASSETS to a folder that holds {', '.join(names)}."
    )
