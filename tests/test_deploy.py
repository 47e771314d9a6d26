"""What lies in deploy/ and the Containerfile is what the command line installs and runs."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex

import pytest
import yaml

import everynode
from everynode.apiserver.resources.builtin import builtin_kinds
from everynode.install import InstallOptions, install_objects
from everynode.install.yaml_output import as_yaml
from tests.support.containerfile import TEXT, instructions
from tests.support.gitops import OURS, run_lua
from tests.support.paths import ROOT

IMAGE = f"everynode:{everynode.__version__}"
WANTED = install_objects(InstallOptions(image=IMAGE))


def copied() -> list[str]:
    """Return the files and folders that come from the repository."""
    lines = [shlex.split(line) for line in instructions("COPY")]
    return [source for line in lines if "--from=build" not in line for source in line[:-1]]


def test_deploy_is_what_install_applies() -> None:
    text = (ROOT / "deploy" / "everynode.yaml").read_text(encoding="utf-8")
    same = text == as_yaml(WANTED)  # compared here: the difference would be longer than useful
    assert same, "run `make deploy`"


def test_the_embedded_cluster_has_every_kind_that_is_installed() -> None:
    served = {(kind.group, kind.version, kind.kind) for kind in builtin_kinds()}
    wanted = {(*each["apiVersion"].rpartition("/")[::2], each["kind"]) for each in WANTED}
    assert wanted <= served


def test_the_kustomization_names_what_is_there() -> None:
    folder = ROOT / "deploy"
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    assert all((folder / name).exists() for name in kustomization["resources"])
    assert [image["name"] for image in kustomization["images"]] == [IMAGE.partition(":")[0]]


def test_the_image_copies_what_is_there() -> None:
    assert copied() == ["requirements/run.txt", "src/everynode", "LICENSE"]
    assert all((ROOT / source).exists() for source in copied())


@pytest.mark.parametrize("source", copied())
def test_nothing_that_is_copied_is_ignored(source: str) -> None:
    lines = (ROOT / ".containerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    # The last rule that matches counts; one with an exclamation mark brings a file back.
    last = [rule for rule in rules if fnmatch.fnmatch(source, rule.removeprefix("!"))][-1]
    assert last.startswith("!")


def test_only_what_has_a_known_hash_is_installed() -> None:
    pip = [line for line in instructions("RUN") if "pip install" in line]
    assert len(pip) == 1
    assert {"--require-hashes", "--only-binary", "--no-cache-dir"} <= {*pip[0].split()}


def test_the_image_and_the_deployment_agree() -> None:
    pod = WANTED[-1]["spec"]["template"]["spec"]
    user = f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}"
    ports = [str(port["containerPort"]) for port in pod["containers"][0]["ports"]]
    assert instructions("USER") == [user]
    assert instructions("EXPOSE") == [" ".join(ports)]
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["python", "-m", "everynode"]
    assert json.loads(instructions("CMD")[0]) == pod["containers"][0]["args"][:1]


def test_the_examples_and_the_label_name_the_current_version() -> None:
    assert {*re.findall(r"-t (\S+)", TEXT)} == {IMAGE}
    assert f'org.opencontainers.image.version="{everynode.__version__}"' in TEXT


def test_the_images_python_is_one_that_we_support() -> None:
    tag = re.search(r"^ARG PYTHON=python:3\.(\d+)-slim", TEXT, re.MULTILINE)
    needed = re.search(
        r'^requires-python = ">=3\.(\d+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
    assert tag is not None
    assert needed is not None
    assert int(tag[1]) >= int(needed[1])


# --- Argo CD -----------------------------------------------------------------------------------

_KIND = "apps.kruise.io_DaemonSet"


def _lua(name: str) -> str:
    return (OURS / name).read_text(encoding="utf-8")


def test_the_configuration_of_argocd_is_made_of_the_lua_beside_it() -> None:
    data = yaml.safe_load((OURS / "argocd-cm.yaml").read_text(encoding="utf-8"))["data"]
    assert data[f"resource.customizations.health.{_KIND}"] == _lua("health.lua")
    actions = yaml.safe_load(data[f"resource.customizations.actions.{_KIND}"])
    assert actions["discovery.lua"] == _lua("actions/discovery.lua")
    made = {each["name"]: each["action.lua"] for each in actions["definitions"]}
    assert made == {name: _lua(f"actions/{name}.lua") for name in ("pause", "resume")}


@pytest.mark.parametrize("strategy", [None, {"type": "RollingUpdate"}, {"rollingUpdate": {}}])
def test_argocd_can_pause_and_resume(strategy: dict[str, object] | None) -> None:
    def possible(obj: dict[str, object]) -> list[str]:
        found = run_lua(_lua("actions/discovery.lua"), obj)
        return sorted(name for name, action in found.items() if not action["disabled"])

    running: dict[str, object] = {"spec": {"updateStrategy": strategy} if strategy else {}}
    assert possible(running) == ["pause"]
    paused = run_lua(_lua("actions/pause.lua"), running)
    assert paused["spec"]["updateStrategy"]["rollingUpdate"] == {"paused": True}
    assert possible(paused) == ["resume"]
    resumed = run_lua(_lua("actions/resume.lua"), paused)
    assert resumed["spec"]["updateStrategy"]["rollingUpdate"] == {"paused": False}


def test_argocd_offers_no_pause_where_pods_are_updated_by_hand() -> None:
    found = run_lua(
        _lua("actions/discovery.lua"), {"spec": {"updateStrategy": {"type": "OnDelete"}}}
    )
    assert found["pause"]["disabled"]
    assert found["resume"]["disabled"]
