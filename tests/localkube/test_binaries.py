"""Binaries are found in the cache or in KUBEBUILDER_ASSETS, or the error says what to do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from everynode.localkube import binaries
from tests.support.kubernetes import OLD_KUBECTL_RELEASE, find_old_kubectl
from tests.support.paths import ROOT

BUILD = ROOT / "hack" / "kubernetes" / "build"
OLD_BUILD = ROOT / "hack" / "kubectl-old" / "build"
PREVIOUS_BUILD = ROOT / "hack" / "kubernetes-1.36" / "build"


def put(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A machine with an empty cache and no Go."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "env", "dirname", "sed", "sort", "head"):
        (tools / name).symlink_to(next(p for p in search_path(name) if p.exists()))
    return {"EVERYNODE_CACHE": str(tmp_path / "cache"), "PATH": str(tools), "HOME": str(tmp_path)}


def search_path(name: str) -> list[Path]:
    return [Path(folder) / name for folder in os.environ["PATH"].split(os.pathsep)]


def run(script: Path, environ: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [script, *arguments]
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


def test_the_releases_are_those_of_the_tools_modules() -> None:
    for module, release in (
        ("kubernetes", binaries.RELEASE),
        ("kubectl-old", OLD_KUBECTL_RELEASE),
        ("kubernetes-1.36", binaries.PREVIOUS_RELEASE),
    ):
        text = (ROOT / "hack" / module / "go.mod").read_text()
        assert f"\nrequire k8s.io/kubernetes {release}\n" in text
        assert text.count(f" v0{release[2:]}\n") == text.count(" => ")


def test_assets_come_before_the_cache(tmp_path: Path, environ: dict[str, str]) -> None:
    cache = put(binaries.cache_folder(binaries.RELEASE, environ), *binaries.CONTROL_PLANE)
    assert binaries.find(environ=environ) == cache
    assets = put(tmp_path / "assets", "etcd", "kube-apiserver", "kubectl")
    environ["KUBEBUILDER_ASSETS"] = str(assets)
    assert binaries.find(environ=environ) == cache
    assert binaries.find(("etcd", "kubectl"), environ) == assets
    put(assets, *binaries.CONTROL_PLANE)
    assert binaries.find(environ=environ) == assets


@pytest.mark.parametrize(
    ("variable", "value", "where"),
    [
        ("EVERYNODE_CACHE", "{}/own", "own"),
        ("EVERYNODE_CACHE", "", ".cache/everynode"),
        ("XDG_CACHE_HOME", "{}/xdg", "xdg/everynode"),
    ],
)
def test_the_cache_is_where_the_script_puts_it(
    environ: dict[str, str], variable: str, value: str, where: str
) -> None:
    home = environ["HOME"]
    environ.pop("EVERYNODE_CACHE")
    environ[variable] = value.format(home)
    folder = Path(home, where, "kubernetes", binaries.RELEASE, "bin")
    put(folder, *binaries.CONTROL_PLANE, *binaries.NODE)
    assert binaries.find(environ=environ) == folder
    assert run(BUILD, environ).stdout == f"{folder}\n"


def test_without_programs_both_ways_are_named(tmp_path: Path, environ: dict[str, str]) -> None:
    environ["KUBEBUILDER_ASSETS"] = str(put(tmp_path / "assets", "etcd"))
    with pytest.raises(binaries.BinariesMissingError) as raised:
        binaries.find(environ=environ)
    text = str(raised.value)
    assert "`make kubernetes`" in text
    assert "set KUBEBUILDER_ASSETS to a folder that holds etcd, kube-apiserver" in text
    assert f"KUBEBUILDER_ASSETS={tmp_path}/assets lacks kube-apiserver" in text
    with pytest.raises(binaries.BinariesMissingError, match="run hack/kubectl-old/build"):
        find_old_kubectl(environ)


def test_the_build_uses_assets(tmp_path: Path, environ: dict[str, str]) -> None:
    assets = put(tmp_path / "assets", *binaries.CONTROL_PLANE)
    result = run(BUILD, {**environ, "KUBEBUILDER_ASSETS": str(assets)})
    assert (result.returncode, result.stdout, result.stderr) == (0, f"{assets}\n", "")


def test_the_build_without_go_names_both_ways(environ: dict[str, str]) -> None:
    result = run(BUILD, environ)
    assert (result.returncode, result.stdout) == (1, "")
    assert "install Go 1.26 or newer" in result.stderr
    assert "set KUBEBUILDER_ASSETS to a folder that holds etcd kube-apiserver" in result.stderr
    assert run(OLD_BUILD, environ).returncode == 1


def test_an_etcd_that_is_too_old_is_built_anew(environ: dict[str, str]) -> None:
    tools = Path(environ["PATH"])
    (tools / "rm").symlink_to(next(p for p in search_path("rm") if p.exists()))
    folder = binaries.cache_folder(binaries.RELEASE, environ)
    put(folder, *binaries.CONTROL_PLANE, *binaries.NODE)
    (folder / "etcd").write_text("#!/bin/sh\necho etcd Version: 3.4.23\n")
    assert "install Go 1.26 or newer" in run(BUILD, environ).stderr
    assert not (folder / "etcd").exists()


def test_an_old_go_does_not_count(environ: dict[str, str]) -> None:
    go = Path(environ["PATH"]) / "go"
    go.write_text("#!/bin/sh\necho go1.25.9\n")
    go.chmod(0o755)
    assert "install Go 1.26 or newer" in run(BUILD, environ).stderr


def test_programs_of_the_release_before_are_built_by_name(environ: dict[str, str]) -> None:
    program = "kube-controller-manager"
    with pytest.raises(binaries.BinariesMissingError, match=f"1.36/build {program}"):
        binaries.find_previous(program, environ)
    for arguments in ((), ("kubelet",)):
        result = run(PREVIOUS_BUILD, environ, *arguments)
        assert (result.returncode, result.stdout) == (2, "")
        assert result.stderr.endswith("build kube-apiserver kube-controller-manager\n")
    assert "Go 1.26 or newer is needed" in run(PREVIOUS_BUILD, environ, program).stderr
    folder = put(binaries.cache_folder(binaries.PREVIOUS_RELEASE, environ), program)
    assert binaries.find_previous(program, environ) == folder / program
    assert run(PREVIOUS_BUILD, environ, program).stdout == f"{folder}\n"
    assert run(PREVIOUS_BUILD, environ, program, "kube-apiserver").returncode == 1
