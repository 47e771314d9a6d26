"""Tutorial test: runs the commands of a documentation page and compares their output.

A block ```console has lines `$ COMMAND`, continued by `> MORE`, each followed by its output. The
commands of a page run in one bash, in order, against a fresh cluster. `…` matches anything in a
line, and any number of lines where it is alone. Blocks of another language, and those under a
comment `<!-- not run: WHY -->`, are ignored. Under a comment `<!-- fails: WHY -->` the last command
must fail; everywhere else all must succeed.

To print the real output of a page: `python -m tests.support.tutorial docs/PAGE.md`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.paths import ROOT

UP: Final = ("up", "--nodes", "6", "--speed", "20")
_READY_SECONDS: Final = 30
_PAGE_SECONDS: Final = 50
_MARK: Final = "<<<everynode-tutorial>>>"

# Text that differs between runs: names of pods and revisions, addresses, ages and times.
_SAFE: Final = "[bcdfghjklmnpqrstvwxz2456789]"
_VOLATILE: Final = (
    (re.compile(rf"-{_SAFE}{{13}}\b"), "-POD"),
    (re.compile(rf"-{_SAFE}{{6,10}}\b"), "-HASH"),
    (re.compile(r"\b\d+\.\d+\.\d+\.\d+(:\d+)?\b"), "IP"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile(r"\b(?=\d)(\d+d)?(\d+h)?(\d+m)?(\d+(\.\d+)?s)?\b(?<=[dhms])"), "AGE"),
    # kubectl 1.34 and later print more.
    (re.compile(r'(?<=" deleted) from \S+ namespace$'), ""),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(slots=True)
class Step:
    """One command and the lines that the page shows below it."""

    line: int
    command: str
    shown: list[str] = field(default_factory=list)
    fails: bool = False


class BadPageError(AssertionError):
    """A page whose output differs from the real one; the message contains the place."""


def read_steps(text: str) -> list[Step]:
    """Return the commands of a page, in order."""
    steps: list[Step] = []
    language, comment = "", ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if language == "console" and comment.startswith("<!-- fails"):
                steps[-1].fails = True
            comment = comment if not language else ""
            language = "" if language else (line[3:].strip() or "text")
        elif not language:
            comment = line if line.startswith("<!-- ") else comment if not line.strip() else ""
        elif language == "console" and not comment.startswith("<!-- not run"):
            _add_line(steps, number, line)
    return steps


def _add_line(steps: list[Step], number: int, line: str) -> None:
    if line.startswith("$ "):
        steps.append(Step(number, line[2:]))
    elif line.startswith("> ") and steps and not steps[-1].shown:
        steps[-1].command += "\n" + line[2:]
    elif steps:
        steps[-1].shown.append(line)
    else:
        raise BadPageError(f"line {number}: a console block begins with `$ `")


def normalise(line: str) -> str:
    """Return the line without the text that differs between runs."""
    for pattern, name in _VOLATILE:
        line = pattern.sub(name, line)
    return line.strip()


def agrees(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines shown describe the lines printed."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "…" else _line_pattern(line) + r"\n"
        for line in shown
        if line.strip()
    )
    text = "".join(f"{normalise(line)}\n" for line in printed if line.strip())
    return re.fullmatch(pattern, text) is not None


def _line_pattern(line: str) -> str:
    return ".*".join(re.escape(part) for part in normalise(line).split("…"))


@contextmanager
def cluster(folder: Path) -> Iterator[Path]:
    """Run `everynode up` while the context lasts; yield the path of its kubeconfig."""
    kubeconfig, log = folder / "kubeconfig", folder / "up.log"
    command = [sys.executable, "-m", "everynode", *UP, "--kubeconfig", str(kubeconfig)]
    with log.open("w") as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder
        )
    assert process.stdout is not None
    try:
        if not any(line == "ready\n" for line in process.stdout):
            raise BadPageError(f"everynode up ended early: {log.read_text()}")
        yield kubeconfig
    finally:
        process.terminate()
        try:
            process.wait(_READY_SECONDS)
        finally:
            process.kill()
            process.stdout.close()


def run_steps(
    steps: list[Step], kubeconfig: Path, folder: Path, *, kubectl: Path | None = None
) -> list[tuple[list[str], int]]:
    """Run all commands in one bash; return the output lines and the exit code of each that ran."""
    first = [kubectl, Path(sys.executable).parent] if kubectl else [Path(sys.executable).parent]
    path = ":".join([*map(str, first), os.environ["PATH"]])
    environment = os.environ | {
        "KUBECONFIG": str(kubeconfig),
        "PATH": path,
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
    }
    process = subprocess.Popen(
        ["bash", "-s"],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(_script(steps), timeout=_PAGE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    finally:
        _end_group(process.pid)
    *done, rest = output.split(_MARK)
    results = []
    for part in done:
        text, _, code = part.rpartition("\n")
        results.append((text.strip("\n").splitlines(), int(code)))
    if len(results) < len(steps) and rest.strip():
        results.append(([*rest.strip("\n").splitlines(), "(it never ended)"], -1))
    return results


def _end_group(group: int) -> None:
    """End the background processes that a page left running."""
    try:
        os.killpg(group, signal.SIGTERM)
    except ProcessLookupError:
        return


def _script(steps: list[Step]) -> str:
    lines = []
    for step in steps:
        # A command must neither read the script nor end it.
        lines += [
            f"{{ {step.command}\n}} </dev/null",
            f"code=$?; printf '\\n%s{_MARK}' $code",
        ]
        expected = "-eq" if step.fails else "-ne"
        lines.append(f"[ $code {expected} 0 ] && exit")
    return "\n".join(lines) + "\n"


def check_page(page: Path, folder: Path, *, kubectl: Path | None = None) -> None:
    """Run a page on a cluster of its own; raises BadPageError at the first difference.

    `kubectl` is the folder of the kubectl to use; the default is the machine's.
    """
    steps = read_steps(page.read_text(encoding="utf-8"))
    with cluster(folder) as kubeconfig:
        results = run_steps(steps, kubeconfig, folder, kubectl=kubectl)
    for step, (printed, code) in zip(steps, results, strict=False):
        where = f"{page.name}:{step.line}: $ {step.command}\n"
        said = "\n".join(printed)
        if (code != 0) != step.fails:
            raise BadPageError(f"{where}ended with exit code {code} and printed\n{said}")
        if not agrees(step.shown, printed):
            shown = "\n".join(step.shown)
            raise BadPageError(f"{where}shown:\n{shown}\nprinted:\n{said}")
    if len(results) < len(steps):
        step = steps[len(results)]
        raise BadPageError(f"{page.name}:{step.line}: $ {step.command}\nwas never reached")


def show_page(page: Path) -> None:
    """Print every command of a page with its real output."""
    steps = read_steps(page.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with cluster(folder) as kubeconfig:
            results = run_steps(steps, kubeconfig, folder)
    for step, (printed, code) in zip(steps, results, strict=False):
        told = "" if agrees(step.shown, printed) and (code != 0) == step.fails else "   # DIFFERS"
        lines = [f"$ {step.command}{told}", *printed, *([f"# exit code {code}"] if code else [])]
        sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        show_page(Path(argument))
