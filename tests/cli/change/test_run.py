"""Changes of DaemonSets on a running cluster, as people type them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from click.testing import Result

from everynode.api.template_equality import normalise
from everynode.change.edits import Edit
from everynode.cli import partition, pause, restart, resume, undo
from everynode.cli import set as set_command
from everynode.cli.access.cluster import Cluster
from everynode.cli.access.daemonset_names import FoundDaemonSet
from everynode.cli.access.options import ClusterOptions
from everynode.cli.change.options import ChangeOptions
from everynode.cli.change.run import run_change
from everynode.errors import UserError
from everynode.kube import verbs
from everynode.kube.resources import ADVANCED, DAEMONSETS, REVISIONS
from tests.cli.test_up import ask
from tests.support.commands import Up, started, typed
from tests.support.stage import daemonset

Object = dict[str, Any]
CHANGE_CAUSE = "kubernetes.io/change-cause"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A cluster without nodes: revisions are written all the same."""
    with started(tmp_path_factory.mktemp("change"), "--nodes", "0") as running:
        for name in ("agent", "other", "third"):
            manifest = daemonset(name)
            manifest["metadata"]["labels"] = {"team": "storage"}
            ask(running, verbs.create(ADVANCED, manifest, namespace="default"))
        native = daemonset("plain", api_version="apps/v1")
        ask(running, verbs.create(DAEMONSETS, native, namespace="default"))
        yield running


def read(up: Up, name: str) -> Object:
    kind, _, name = name.rpartition("/")
    resource = DAEMONSETS if kind == "ds" else ADVANCED
    return ask(up, verbs.get(resource, name, namespace="default"))[0]


def image_of(obj: Object) -> str:
    return str(obj["spec"]["template"]["spec"]["containers"][0]["image"])


def is_paused(obj: Object) -> bool:
    return bool(obj["spec"]["updateStrategy"].get("rollingUpdate", {}).get("paused"))


def error(result: Result) -> str:
    assert isinstance(result.exception, UserError), result.output
    return str(result.exception)


@pytest.mark.parametrize("name", ["ads/agent", "ds/plain"])
def test_a_new_image_is_set_with_its_cause_and_a_manager_of_its_own(up: Up, name: str) -> None:
    result = typed(set_command.command, up, "image", name, "agent=agent:v2")
    kind = "apps" if name == "ds/plain" else "apps.kruise.io"
    bare = name.partition("/")[2]
    assert result.stdout == f"daemonset.{kind}/{bare} image updated: agent agent:v1 → agent:v2\n"
    assert result.stderr == f"Follow it: everynode status {name} --watch\n"
    found = read(up, name)
    assert image_of(found) == "agent:v2"
    cause = found["metadata"]["annotations"][CHANGE_CAUSE]
    assert cause == f"everynode set image {name} agent=agent:v2"
    assert "everynode-cli" in [each["manager"] for each in found["metadata"]["managedFields"]]
    every = typed(
        set_command.command, up, "image", name, "*=agent:v9", "-o", "json", "--dry-run=client"
    )
    notes = json.loads(every.stdout)["metadata"]["annotations"]
    assert notes[CHANGE_CAUSE] == f"everynode set image {name} '*=agent:v9'"  # can be typed again
    again = typed(set_command.command, up, "image", name, "agent=agent:v2")
    assert again.stdout.endswith("has these images already\n")


def test_a_dry_run_changes_nothing(up: Up) -> None:
    before = read(up, "other")
    client = typed(set_command.command, up, "image", "other", "agent=x", "--dry-run=client")
    assert client.stdout.endswith("image updated: agent agent:v1 → x (dry run)\n")
    shown = typed(
        set_command.command, up, "image", "other", "agent=x", "--dry-run=client", "-o", "json"
    )
    assert image_of(json.loads(shown.stdout)) == "x"
    server = typed(
        set_command.command, up, "image", "other", "agent=x", "--dry-run=server", "-o", "yaml"
    )
    assert image_of(yaml.safe_load(server.stdout)) == "x"
    assert read(up, "other") == before


def test_the_server_refuses_what_is_wrong_in_a_dry_run(up: Up) -> None:
    result = typed(partition.command, up, "other", "101%", "--dry-run=server")
    assert result.exit_code == 2
    assert "'101%': give a number of nodes, or a percentage such as 30%" in result.output


def test_pause_resume_and_partition(up: Up) -> None:
    assert typed(pause.command, up, "other").stdout.endswith("/other paused\n")
    assert typed(pause.command, up, "other").stdout.endswith("is paused already\n")
    late = typed(restart.command, up, "other")
    assert late.stderr == "It is paused. Let it go: everynode resume ads/other\n"
    assert typed(resume.command, up, "other").stdout.endswith("/other resumed\n")
    assert typed(partition.command, up, "other", "30%").stdout.endswith("partition 0 → 30%\n")
    assert typed(partition.command, up, "other", "0").stdout.endswith("partition 30% → 0\n")
    template = read(up, "other")["spec"]["template"]
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]


def wait_for_revisions(up: Up, name: str, count: int) -> list[Object]:
    """Watch the revisions of a DaemonSet until there are that many."""
    found: list[Object] = []
    while len(found) < count:
        listed = ask(up, verbs.list_page(REVISIONS))[0]["items"]
        found = [item for item in listed if item["metadata"]["name"].startswith(f"{name}-")]
    return found


@pytest.mark.parametrize("name", ["ads/third", "ds/plain"])
def test_undo_brings_back_the_template_and_its_cause(up: Up, name: str) -> None:
    bare = name.partition("/")[2]
    first = read(up, name)
    wait_for_revisions(up, bare, 1)
    typed(set_command.command, up, "image", name, "agent=agent:bad")
    wait_for_revisions(up, bare, 2)
    result = typed(undo.command, up, name)
    assert result.exit_code == 0, result.output
    assert " rolled back to revision " in result.stdout
    after = read(up, name)
    assert normalise(after["spec"]["template"]) == normalise(first["spec"]["template"])
    assert "$patch" not in after["spec"]["template"]
    before = first["metadata"].get("annotations", {}).get(CHANGE_CAUSE)
    assert after["metadata"].get("annotations", {}).get(CHANGE_CAUSE) == before


def test_undo_names_the_revisions_that_there_are(up: Up) -> None:
    wait_for_revisions(up, "agent", 1)
    said = error(typed(undo.command, up, "agent", "--to-revision", "99"))
    assert said.startswith("ads/agent has no revision 99; there are: 1")


def test_several_are_changed_only_after_a_confirmation(up: Up) -> None:
    said = error(typed(pause.command, up, "-l", "team=storage"))
    assert said == (
        "pause: 3 DaemonSets (ads/agent in default, ads/other in default, ads/third in default); "
        "add --yes to change them all"
    )
    assert not is_paused(read(up, "agent"))
    result = typed(pause.command, up, "-l", "team=storage", "-A", "--yes", "-o", "name")
    assert result.stdout.splitlines() == [
        f"daemonset.apps.kruise.io/{name}" for name in ("agent", "other", "third")
    ]
    assert is_paused(read(up, "third"))
    assert typed(resume.command, up, "agent", "other", "third", "--yes").exit_code == 0


def test_nothing_is_written_unless_all_of_it_can_be(up: Up) -> None:
    said = error(typed(pause.command, up, "agent", "ds/plain", "--yes"))
    assert said.startswith("ds/plain is a native DaemonSet")
    assert not is_paused(read(up, "agent"))


def test_a_change_between_reading_and_writing_is_not_overwritten(up: Up) -> None:
    edited = []

    async def edit(cluster: Cluster, found: FoundDaemonSet, stored: Object) -> Edit:
        edited.append(stored["metadata"]["resourceVersion"])
        if len(edited) == 1:  # another client is faster
            body = {"metadata": {"labels": {"touched": "yes"}}}
            await cluster.client.write(
                verbs.patch(ADVANCED, "agent", body, namespace="default"), bytes
            )
        return Edit(done="labelled", patch={"metadata": {"labels": {"mine": "yes"}}})

    options = ChangeOptions(access=ClusterOptions(str(up.kubeconfig)))
    run_change(["agent"], options, edit, verb="label")
    assert len({*edited}) == 2
    labels = read(up, "agent")["metadata"]["labels"]
    assert (labels["touched"], labels["mine"]) == ("yes", "yes")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("image", "agent"), 2),
        (("image", "agent", "agent="), 2),
        (("image", "agent", "=x"), 2),
        (("image", "agent", "agent=two words"), 2),
    ],
)
def test_an_image_that_is_none_is_wrong_usage(
    up: Up, arguments: tuple[str, ...], code: int
) -> None:
    assert typed(set_command.command, up, *arguments).exit_code == code


def test_mistakes_are_one_clear_line(up: Up) -> None:
    assert "give the names" in error(typed(pause.command, up))
    assert "give the names" in error(typed(pause.command, up, "agent", "-l", "a=b"))
    assert "needs a selector" in error(typed(pause.command, up, "agent", "-A"))
    assert error(typed(pause.command, up, "-l", "a=b")) == "no DaemonSet has the labels a=b"
    assert "no container x" in error(typed(set_command.command, up, "image", "agent", "x=y"))
