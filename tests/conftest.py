"""Fixtures of all tests: real control planes; and a summary of skipped and slow tests."""

from __future__ import annotations

import signal
from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from everynode.localkube.control_plane import ControlPlane, ControlPlaneOptions
from tests.support.kubernetes import running

# A shell that runs the tests in the background has them ignore Ctrl-C, and everything they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Under nohup the tests go on without a terminal, while what they start reacts to SIGHUP as usual.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda _number, _frame: None)
# How long an example takes depends on the machine; timings belong into benchmarks.
settings.register_profile("no-timing", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no-timing")
_LONG = 300.0  # seconds; only tests that take a minute or more may take more
_WORTH_A_LINE = 60.0  # seconds of all tests together


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

    The first of them waits until it has started, and all of them may have a busy machine. Tests
    that may take longest come first, so that none is left for one process alone at the end; xdist
    begins with those of a group in any case.
    """
    for item in items:
        needed = getattr(item, "fixturenames", ())
        if "api_server" in needed:
            item.add_marker(pytest.mark.xdist_group("api-server"))
        if item.get_closest_marker("kubernetes") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(300))
    items.sort(key=_longest, reverse=True)


def _longest(item: pytest.Item) -> float:
    """How long a test may take; all that are not known to take long are alike."""
    limit = item.get_closest_marker("timeout")
    return _LONG if limit is None else max(_LONG, float(limit.args[0]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line for each reason to skip, and the folders that took longest."""
    _print_skips(terminalreporter)
    _print_times(terminalreporter)


def _print_times(terminalreporter: pytest.TerminalReporter) -> None:
    seconds: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0]
                seconds["/".join(file.split("/")[:2])] += report.duration
    if sum(seconds.values()) > _WORTH_A_LINE:
        slowest = sorted(seconds, key=lambda folder: -seconds[folder])[:10]
        times = ", ".join(f"{folder} {seconds[folder]:.0f} s" for folder in slowest)
        terminalreporter.write_line(f"slowest: {times}")


def _print_skips(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", ())
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} skipped: {reason}", yellow=True)
