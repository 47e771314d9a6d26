from __future__ import annotations

import json
import os
import pty
import re
import select
import struct
import sys
import termios
from fcntl import ioctl

import pytest

from everynode.cli.status import command
from tests.support.commands import Up, typed


def test_the_picture_of_a_rollout_that_waits(rollouts: Up) -> None:
    result = typed(command, rollouts, "stuck")
    assert result.exit_code == 0
    title, *rest = result.stdout.splitlines()
    assert re.fullmatch(
        r"ads/stuck waiting, begun \w+ ago · namespace default · revision 2 · a:never-ready", title
    )
    assert rest == [
        "",
        "  ------------------------------  0 of 5 nodes updated, 4 available",
        "",
        "  zone-a  .o",
        "  zone-b  oo",
        "  zone-c  o!",
        "",
        "  ! 1 waiting   o 4 queued   . 1 not-eligible",
        "",
        "  budget     1 of 1 down (maxUnavailable: 20%)",
        "  waiting    1 NotReady: node-0006",
        "",
        "  waiting: nothing moves at the moment, and nodes wait for something",
        "  next: everynode why node-0006 ads/stuck",
    ]


def test_what_is_held_names_the_command_that_lets_it_go_on(rollouts: Up) -> None:
    text = typed(command, rollouts, "held").stdout
    assert text.endswith("next: everynode partition ads/held 0\n")


def test_a_rollout_that_is_done_as_far_as_declared_is_no_failure(rollouts: Up) -> None:
    for name in ("done", "held", "ds/net"):
        assert typed(command, rollouts, name).exit_code == 0
        watched = typed(command, rollouts, name, "--watch", "--timeout", "30s")
        assert watched.exit_code == 0
        assert len(watched.stdout.splitlines()) == 1
    assert watched.stdout.startswith("ds/net complete: 5 of 5 updated, 5 available")


def test_a_watch_ends_at_its_timeout(rollouts: Up) -> None:
    result = typed(command, rollouts, "stuck", "--watch", "--timeout", "1s")
    assert str(result.exception) == "not ended after 1 s; --timeout is over"
    assert "1 waiting, 4 queued, 1 NotReady" in result.stdout


def test_a_program_gets_one_document(rollouts: Up) -> None:
    document = json.loads(typed(command, rollouts, "held", "-o", "json").stdout)
    assert (document["state"], document["held"], document["updated"]) == ("held", 3, 2)
    assert typed(command, rollouts, "held", "-o", "json", "--watch").exit_code == 2
    assert typed(command, rollouts, "held", "--timeout", "5s").exit_code == 2
    assert "such as 20s" in str(
        typed(command, rollouts, "held", "-w", "--timeout", "soon").exception
    )


@pytest.mark.parametrize("columns", [80, 140])
def test_a_terminal_gets_colours_and_lines_that_fit(rollouts: Up, columns: int) -> None:
    words = [
        "-m",
        "everynode",
        "status",
        "held",
        "--watch",
        "--kubeconfig",
        str(rollouts.kubeconfig),
    ]
    screen, code = in_terminal([sys.executable, *words], columns)
    assert code == 0
    assert "\x1b[32m●\x1b[0m" in screen
    plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", screen)
    lines = plain.replace("\r\n", "\n").splitlines()
    assert "  zone-c  ◇ ●" in lines
    assert max(len(line) for line in lines) <= columns


def test_a_terminal_is_asked_which_of_two_sets_is_meant(rollouts: Up) -> None:
    words = ["status", "net", "--kubeconfig", str(rollouts.kubeconfig)]
    command = [sys.executable, "-m", "everynode", *words]
    screen, code = in_terminal(command, 80, question="Which one", answer="ds/net")
    assert code == 0
    assert "There are two DaemonSets net. Which one (ads/net, ds/net):" in screen
    assert "\x1b[1mds/net\x1b[0m \x1b[32m\x1b[1mcomplete" in screen


def in_terminal(
    command: list[str], columns: int, *, question: str = "", answer: str = ""
) -> tuple[str, int]:
    """Run a command in a terminal of that width; return what it wrote, and its exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        os.execve(command[0], command, {**environment, "TERM": "xterm", "PYTHONUTF8": "1"})
    written = b""
    while select.select([terminal], [], [], 50)[0]:
        try:
            written += os.read(terminal, 65536)
        except OSError:  # the end, on Linux
            break
        if question and question.encode() in written:
            os.write(terminal, f"{answer}\n".encode())
            question = ""
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return written.decode(), os.waitstatus_to_exitcode(status)
