"""Prometheus and promtool for tests: how to get them, and a server that scrapes one address."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from tests.support.processes import Address, alive, listening

PROMETHEUS: Final = shutil.which("prometheus") or "prometheus"
PROMTOOL: Final = shutil.which("promtool") or "promtool"
needs_prometheus: Final = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool"))
    and os.environ.get("EVERYNODE_REQUIRE_PROMETHEUS") != "1",
    reason="needs Prometheus and promtool: run hack/prometheus/install (Debian, Ubuntu)",
)
_PATIENCE: Final = 120.0
_Found = TypeVar("_Found")


def eventually(find: Callable[[], _Found], what: str) -> _Found:
    """Return what is found as soon as anything is; fail after a minute."""
    deadline = time.monotonic() + _PATIENCE
    while not (found := find()):
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.05)
    return found


def address_of(process: subprocess.Popen[bytes]) -> Address:
    """Wait until a process listens somewhere; return where."""

    def found() -> set[Address]:
        assert alive(process.pid), "it has ended; its log says why"
        return listening(process.pid)

    return min(eventually(found, "address that it listens on"))


class Prometheus:
    """A running Prometheus."""

    def __init__(self, address: Address) -> None:
        self._base = f"http://{address.host}:{address.port}/api/v1/"

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer."""
        url = self._base + path + "?" + urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(url, timeout=60) as response:
            return json.load(response)["data"]

    def names(self) -> set[str]:
        """Return the names of all metrics that were scraped."""
        return {*self.get("label/__name__/values")}

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series that an expression has now."""
        found: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return found

    def rules(self) -> dict[str, dict[str, Any]]:
        """Return the alerts by name, each with its state and the last error."""
        groups = self.get("rules")["groups"]
        return {rule["name"]: rule for group in groups for rule in group["rules"]}


@contextmanager
def prometheus(folder: Path, *, scrapes: Address, rules: Path) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes one address and evaluates the rules, several times a second."""
    config = {
        "global": {"scrape_interval": "200ms", "evaluation_interval": "200ms"},
        "rule_files": [str(rules)],
        "scrape_configs": [
            {
                "job_name": "everynode",
                "honor_labels": True,
                "static_configs": [{"targets": [f"{scrapes.host}:{scrapes.port}"]}],
            }
        ],
    }
    file = folder / "prometheus.json"  # which is YAML as well
    file.write_text(json.dumps(config), encoding="utf-8")
    command = [
        PROMETHEUS,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'prometheus-data'}",
        "--web.listen-address=127.0.0.1:0",
    ]
    with (folder / "prometheus.log").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield Prometheus(address_of(process))
    finally:
        process.kill()
        process.wait()
