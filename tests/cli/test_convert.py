from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from everynode.api import keys
from everynode.cli.convert import command
from everynode.errors import UserError
from everynode.sim.plans.manifests import daemonset

SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "agent"}}
CANARY = {"partition": 3, "maxUnavailable": 2}


def convert(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(command, arguments, input=given)


def read(result: Result) -> list[Any]:
    assert result.exit_code == 0, result.output
    return list(yaml.safe_load_all(result.stdout))


def write(folder: Path, *objects: object) -> str:
    path = folder / "given.yaml"
    path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return str(path)


def test_daemonsets_change_their_version_and_other_objects_stay(tmp_path: Path) -> None:
    given = daemonset(api_version=keys.APPS_V1)
    result = convert("-f", write(tmp_path, SERVICE, given))
    assert read(result) == [SERVICE, {**given, "apiVersion": keys.V1BETA1}]
    assert result.stderr == ""


def test_what_runs_can_be_piped_in_as_a_list() -> None:
    running = daemonset(api_version=keys.APPS_V1)
    running["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    running["status"] = {"numberReady": 3}
    listed = yaml.safe_dump({"kind": "List", "apiVersion": "v1", "items": [running] * 2})
    made = read(convert("-f", "-", "--to", keys.V1ALPHA1, given=listed))
    assert made == [{**daemonset(), "apiVersion": keys.V1ALPHA1}] * 2


def test_what_has_no_counterpart_is_refused_in_one_line(tmp_path: Path) -> None:
    name = write(tmp_path, daemonset(rolling=CANARY))
    result = convert("-f", name, "--to", keys.APPS_V1)
    assert result.stdout == ""
    assert isinstance(result.exception, UserError)
    assert str(result.exception) == (
        f"{name}: apps/v1 has no field for parts of DaemonSet agent; --drop leaves out "
        "spec.updateStrategy.rollingUpdate.partition (no node is held back)"
    )


def test_what_has_no_counterpart_is_dropped_with_a_word_about_it(tmp_path: Path) -> None:
    name = write(tmp_path, daemonset(rolling=CANARY))
    result = convert("-f", name, "--to", keys.APPS_V1, "--drop")
    [made] = read(result)
    assert made["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 2}
    assert result.stderr == (
        "dropped spec.updateStrategy.rollingUpdate.partition of agent: no node is held back\n"
    )


def test_all_files_are_printed_or_none(tmp_path: Path) -> None:
    name = write(tmp_path, daemonset())
    assert len(read(convert("-f", name, "-f", name))) == 2
    result = convert("-f", name, "-f", str(tmp_path / "missing.yaml"))
    assert (result.stdout, result.exit_code) == ("", 1)
    assert isinstance(result.exception, UserError)


@pytest.mark.parametrize("arguments", [(), ("-f", "-", "--to", "apps/v2")])
def test_wrong_usage_is_reported(arguments: tuple[str, ...]) -> None:
    assert convert(*arguments).exit_code == 2
