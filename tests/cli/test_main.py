"""The command group: help, version, and commands that are not typed in full."""

from __future__ import annotations

import ast
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

import everynode
from everynode.cli import main
from everynode.sim.plans.manifests import daemonset
from tests.support.commands import everynode as typed

# Each of them, or what it needs, takes as long as a whole --help may take.
SLOW_TO_IMPORT = (
    "aiohttp",
    "cryptography",
    "everynode.apiserver.verbs.dispatch",
    "everynode.controller.run",
    "everynode.kube.http.transport",
    "everynode.sim",
    "httptools",
    "prometheus_client",
    "yaml",
)
NAMES = [name for section in main.COMMANDS.values() for name in section]


def test_nothing_typed_is_answered_with_help() -> None:
    result = typed()
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == typed("--help").stdout


def test_the_program_has_one_name_however_it_is_started() -> None:
    command = [sys.executable, "-m", "everynode", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert result.stdout.startswith("Usage: everynode [OPTIONS] COMMAND")


def test_ctrl_c_while_it_is_still_being_imported_shows_no_traceback(tmp_path: Path) -> None:
    interrupting = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    (tmp_path / "click.py").write_text(interrupting)
    result = subprocess.run(
        [sys.executable, "-m", "everynode", "--help"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (result.returncode, result.stderr) == (-signal.SIGINT, "")


def test_the_help_has_a_line_for_every_command_and_imports_none() -> None:
    code = (
        "import sys; from everynode.cli.main import entry; entry.main(standalone_mode=False);"
        "print([each for each in sys.modules if each.startswith('everynode.')])"
    )
    command = [sys.executable, "-c", code, "--help"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    *lines, modules = result.stdout.splitlines()
    shown = [line.split()[0] for line in lines if line.startswith("  ")]
    assert [name for name in shown if name in NAMES] == NAMES
    assert ast.literal_eval(modules) == [
        "everynode.cli",
        "everynode.cli.access",
        "everynode.cli.access.option_order",
        "everynode.errors",
        "everynode.cli.main",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_the_help_of_a_command_imports_little_so_that_it_is_quick(name: str) -> None:
    code = (
        "import sys; from everynode.cli.main import entry; entry.main(standalone_mode=False);"
        "print([each for each in sys.modules])"
    )
    command = [sys.executable, "-c", code, name, "--help"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    imported = ast.literal_eval(result.stdout.splitlines()[-1])
    assert [each for each in imported if each in SLOW_TO_IMPORT] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself_and_its_options(name: str) -> None:
    context = main.entry.make_context("everynode", [name], resilient_parsing=True)
    command = main.entry.get_command(context, name)
    assert command is not None
    assert command.help
    unexplained = [
        option.name
        for option in command.params
        if option.param_type_name == "option" and not getattr(option, "help", "")
    ]
    assert unexplained == []
    assert CliRunner().invoke(command, ["--help"]).exit_code == 0


def test_a_command_that_does_not_exist_is_refused_and_a_likely_one_named() -> None:
    result = typed("isntall")
    assert result.returncode == 2
    assert result.stderr.endswith("No such command 'isntall'. Did you mean 'install'?\n")
    result = typed("nothing-like-it")
    assert result.returncode == 2
    assert result.stderr.endswith("No such command 'nothing-like-it'.\n")


def test_the_version_is_that_of_the_package() -> None:
    assert typed("--version").stdout == f"everynode, version {everynode.__version__}\n"


@pytest.mark.parametrize(
    ("words", "completed"),
    [("everynode in", ["install"]), ("everynode node st", ["start", "stop"])],
)
def test_a_shell_completes_what_is_typed(words: str, completed: list[str]) -> None:
    told = {
        "_EVERYNODE_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    script = "import sys; sys.argv[0] = 'everynode'; from everynode.cli.main import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **told},
    )
    assert [line.partition(",")[2] for line in result.stdout.splitlines()] == completed


@pytest.mark.parametrize("command", ["everynode --help", "everynode demo --nodes 5 --speed 100"])
def test_a_reader_who_has_read_enough_is_no_error(command: str) -> None:
    script = f"set -o pipefail; {sys.executable} -m {command} | head -1"
    result = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert result.stdout.count("\n") == 1
    assert result.stderr == ""


def test_the_first_process_of_a_container_ends_when_it_is_told_to(tmp_path: Path) -> None:
    pipe = tmp_path / "manifest"
    os.mkfifo(pipe)
    code = "import os; os.getpid = lambda: 1; from everynode.cli.main import main; main()"
    command = [sys.executable, "-c", code, "convert", "-f", str(pipe)]
    with subprocess.Popen(command) as process, pipe.open("w"):  # opens when it is read
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 128 + signal.SIGTERM


def test_usage_errors_have_another_exit_code_than_failures() -> None:
    assert typed("simulate", "--stale").returncode == 2
    assert typed("convert", "-f", "missing.yaml").returncode == 1


@pytest.mark.parametrize("words", [("install", "--print"), ("demo", "--nodes", "5")])
def test_a_full_disk_is_one_line(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "everynode", *words]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    assert (ran.returncode, ran.stderr) == (1, "everynode: cannot write: No space left on device\n")


def test_a_closed_stdout_is_no_error() -> None:
    shell = f"{sys.executable} -m everynode demo --nodes 5 --speed 1000 >&- 2>&-"
    assert subprocess.run(["sh", "-c", shell], timeout=120, check=False).returncode == 0


def test_a_terminal_without_our_signs_gets_others(tmp_path: Path) -> None:
    manifest = tmp_path / "agent.yaml"
    manifest.write_text(yaml.safe_dump(daemonset()), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "everynode", "simulate", "-f", str(manifest), "--nodes", "3"],
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"updated?" in ran.stdout


def typed_names(group: click.Group = main.entry, before: str = "") -> Iterator[str]:
    """Yield all commands as they are typed: `status`, `set image`."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from typed_names(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


@pytest.mark.parametrize("name", list(typed_names()))
def test_the_help_of_every_command_has_an_example(name: str) -> None:
    result = CliRunner().invoke(main.entry, [*name.split(), "--help"])
    assert result.exit_code == 0
    described = result.stdout.partition("Options:")[0].partition("\n")[2]
    assert re.search(rf"everynode {name}\b", described)
