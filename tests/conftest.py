"""What all tests share: real control planes, and a word at the end about what was skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from tests.kubernetes import running

from everynode.cli.kubernetes.controlplane import ControlPlane, Options


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """A whole control plane, one for all tests of a process."""
    with running() as plane:
        yield plane


@pytest.fixture(scope="session")
def api_server() -> Iterator[ControlPlane]:
    """A real API server where nobody acts but those who ask, one for all tests of a process.

    Only disruption budgets are counted: the embedded server counts them itself.
    """
    with running(Options(controllers="disruption-controller", scheduler=False)) as plane:
        yield plane


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each reason to skip."""
    skipped = terminalreporter.stats.get("skipped", ())
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} skipped: {reason}", yellow=True)
