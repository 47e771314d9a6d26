"""`everynode lint` as people type it."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from everynode.cli.lint import command
from everynode.errors import UserError
from tests.support.paths import ROOT

EXAMPLE = ROOT / "examples" / "01-first-daemonset.yaml"


def test_warnings_fail_only_when_strict() -> None:
    result = CliRunner().invoke(command, ["-f", str(EXAMPLE)])
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{EXAMPLE}: ds/log-agent: warning: ")
    assert "1 DaemonSet checked: 0 errors, " in result.stderr
    assert CliRunner().invoke(command, ["-f", str(EXAMPLE), "--strict"]).exit_code == 1


def test_the_examples_have_no_errors_and_the_one_to_start_from_no_warnings() -> None:
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        strict = ["--strict"] if path.stem == "21-production" else []
        result = CliRunner().invoke(command, ["-f", str(path), *strict])
        assert result.exit_code == 0, result.stdout


def test_an_error_fails(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(EXAMPLE.read_text().replace("containers:", "contianers:"))
    result = CliRunner().invoke(command, ["-f", str(path), "-o", "json"])
    assert result.exit_code == 1
    items = json.loads(result.stdout)["items"]
    assert items[0]["severity"] == "error"
    assert items[0]["path"] == "spec.template.spec.contianers"
    assert "did you mean containers?" in items[0]["message"]


def test_each_finding_says_which_daemonset_of_a_file_it_is_about(tmp_path: Path) -> None:
    advanced, native = (
        f"apiVersion: {version}\nkind: DaemonSet\nmetadata: {{name: agent{more}}}\n"
        for version, more in (("apps.kruise.io/v1beta1", ""), ("apps/v1", ", namespace: web"))
    )
    path = tmp_path / "two.yaml"
    unknown = "apiVersion: apps/v7\nkind: DaemonSet\nmetadata: {name: agent}\n"
    path.write_text(f"{advanced}---\n{native}---\n{unknown}---\nkind: DaemonSet\n")
    lines = CliRunner().invoke(command, ["-f", str(path)]).stdout.splitlines()
    about = list(dict.fromkeys(line.split(": ")[1] for line in lines))
    assert about == [
        "ads/agent",
        "ds/agent in web",
        "DaemonSet agent",
        "DaemonSet without a name",
    ]
    printed = CliRunner().invoke(command, ["-f", str(path), "-o", "json"]).stdout
    items = json.loads(printed)["items"]
    known = {(each["apiVersion"], each["namespace"], each["name"]) for each in items}
    assert ("apps/v1", "web", "agent") in known


def test_standard_input_and_several_documents() -> None:
    text = (
        f"{EXAMPLE.read_text()}\n---\nkind: ConfigMap\napiVersion: v1\n---\n{EXAMPLE.read_text()}"
    )
    result = CliRunner().invoke(command, ["-f", "-"], input=text)
    assert result.stdout.startswith("standard input: ds/log-agent: ")
    assert result.stderr.startswith("2 DaemonSets checked")


def test_mistakes_are_one_clear_line(tmp_path: Path) -> None:
    missing = CliRunner().invoke(command, ["-f", str(tmp_path / "none.yaml")])
    assert isinstance(missing.exception, UserError)
    (tmp_path / "empty.yaml").write_text("kind: ConfigMap\n")
    empty = CliRunner().invoke(command, ["-f", str(tmp_path / "empty.yaml")])
    assert str(empty.exception).endswith("empty.yaml holds no DaemonSet")


def test_a_manifest_sends_no_escapes_and_no_lines_to_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "hostile.yaml"
    name = r'"a\e]52;c;eA==\a\nforged"'
    path.write_text(f"apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{name: {name}}}\nspec: {{}}")
    lines = CliRunner().invoke(command, ["-f", str(path)]).stdout.splitlines()
    assert lines
    assert all(each.isprintable() and each.startswith(f"{path}: ") for each in lines)
