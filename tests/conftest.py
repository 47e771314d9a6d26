"""What all tests share: real control planes, and a word at the end about what was skipped."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions
from tests.support.kubernetes import running

# A shell that runs the tests in the background has them ignore Ctrl-C, and everything they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """A whole control plane, one for all tests of a process."""
    with running() as plane:
        yield plane


@pytest.fixture(scope="session")
def api_server() -> Iterator[ControlPlane]:
    """A real API server without controllers, shared by all tests of a process."""
    with running(ControlPlaneOptions(controllers=None, scheduler=False)) as plane:
        yield plane


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share an API server run in one process, so that one server is enough.

    The first of them waits until it has started, and all of them may have a busy machine.
    """
    for item in items:
        needed = getattr(item, "fixturenames", ())
        if "api_server" in needed:
            item.add_marker(pytest.mark.xdist_group("api-server"))
        if item.get_closest_marker("kubernetes") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(300))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each reason to skip."""
    skipped = terminalreporter.stats.get("skipped", ())
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} skipped: {reason}", yellow=True)
