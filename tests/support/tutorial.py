"""Tutorial test: runs the commands of a documentation page and compares their output.

A block ```console has lines `$ COMMAND`, continued by `> MORE`, each followed by its output. The
commands of a page run in one bash, in order, against the cluster that `make up` starts. All pages
share one, in the order in which they are read, so each must leave it as it was. `…` matches
anything in a line, and any number of lines where it is alone. Blocks of another language, and those
under a comment `<!-- not run: WHY -->`, are ignored. Under a comment `<!-- fails: WHY -->` the last
command must fail; everywhere else all must succeed.

To print the real output of pages: `python -m tests.support.tutorial docs/PAGE.md…`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from everynode.components.annotations import PREFIX
from tests.support.paths import ROOT

_NODE_LIFECYCLE: Final = "node.kubernetes.io/"  # taints of the node controller, which come and go
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


def start_command() -> list[str]:
    """Return the arguments with which `make up` starts everynode."""
    recipe = re.search(r"^up:.*\n\t@\$\(BIN\)/everynode (.+)$", _makefile(), re.MULTILINE)
    assert recipe is not None
    return recipe[1].split()


def _makefile() -> str:
    return (ROOT / "Makefile").read_text(encoding="utf-8")


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
    arguments = [*start_command(), "--kubeconfig", str(kubeconfig)]
    command = [sys.executable, "-m", "everynode", *arguments]
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
        output, _ = process.communicate(_script(steps, folder), timeout=_PAGE_SECONDS)
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


def _script(steps: list[Step], folder: Path) -> str:
    lines = []
    ports: dict[str, int] = {}
    for step in steps:
        # A command must neither read the script nor end it.
        lines += [
            f"{{ {_with_own_files(_with_free_ports(step.command, ports), folder)}\n}} </dev/null",
            f"code=$?; printf '\\n%s{_MARK}' $code",
        ]
        expected = "-eq" if step.fails else "-ne"
        lines.append(f"[ $code {expected} 0 ] && exit")
    return "\n".join(lines) + "\n"


def _with_own_files(command: str, folder: Path) -> str:
    """Move the files that a page writes to its own folder: the same page may run twice at once."""
    return command.replace("/tmp/", f"{folder}/")


def _with_free_ports(command: str, ports: dict[str, int]) -> str:
    """Replace each fixed port of a page by a free one: other programs may listen on it."""

    def replace(found: re.Match[str]) -> str:
        return f"127.0.0.1:{ports.setdefault(found[1], free_port())}"

    return re.sub(r"127\.0\.0\.1:(\d+)", replace, command)


def free_port() -> int:
    """Return a port of the loopback interface on which no program listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def check_page(page: Path, kubeconfig: Path, folder: Path, *, kubectl: Path | None = None) -> None:
    """Run a page on a cluster; raises BadPageError at the first difference.

    `kubectl` is the folder of the kubectl to use; the default is the machine's.
    """
    steps = read_steps(page.read_text(encoding="utf-8"))
    before = describe_cluster(kubeconfig)
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
    left = describe_cluster(kubeconfig) ^ before
    if left:
        raise BadPageError(f"{page.name} does not clean up: {', '.join(sorted(left))}")


def describe_cluster(kubeconfig: Path) -> set[str]:
    """Return what a page could leave behind: workloads, and how nodes and images were changed."""
    workloads = _kubectl(kubeconfig, "get", "ds,ads,pods,controllerrevisions", "-A", "-o", "name")
    images = _kubectl(
        kubeconfig, "get", "-n=kube-system", "cm/everynode-images", "-o=jsonpath={.data.images}"
    )
    found = {*workloads.split(), *(f"image {line}" for line in images.splitlines())}
    for node in json.loads(_kubectl(kubeconfig, "get", "nodes", "-o", "json"))["items"]:
        name, spec = node["metadata"]["name"], node["spec"]
        found |= {f"{name} label {key}" for key in node["metadata"]["labels"]}
        found |= {
            f"{name} annotation {key}"
            for key in node["metadata"].get("annotations", {})
            if key.startswith(PREFIX)
        }
        found |= {
            f"{name} taint {taint['key']}"
            for taint in spec.get("taints", ())
            if not taint["key"].startswith(_NODE_LIFECYCLE)
        }
        found |= {f"{name} cordoned"} if spec.get("unschedulable") else set()
    return found


def _kubectl(kubeconfig: Path, *arguments: str) -> str:
    command = ["kubectl", "--kubeconfig", str(kubeconfig), *arguments, "--ignore-not-found"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def show_pages(pages: list[Path]) -> None:
    """Print every command of these pages with its real output, and what each page leaves behind."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with cluster(folder) as kubeconfig:
            for page in pages:
                _show_page(page, kubeconfig, folder)


def _show_page(page: Path, kubeconfig: Path, folder: Path) -> None:
    steps = read_steps(page.read_text(encoding="utf-8"))
    before = describe_cluster(kubeconfig)
    results = run_steps(steps, kubeconfig, folder)
    for step, (printed, code) in zip(steps, results, strict=False):
        told = "" if agrees(step.shown, printed) and (code != 0) == step.fails else "   # DIFFERS"
        lines = [f"$ {step.command}{told}", *printed, *([f"# exit code {code}"] if code else [])]
        sys.stdout.write("\n".join(lines) + "\n")
    for left in sorted(describe_cluster(kubeconfig) ^ before):
        sys.stdout.write(f"# LEFT BEHIND: {left}\n")


if __name__ == "__main__":
    show_pages([Path(argument) for argument in sys.argv[1:]])
