"""Recorded responses of a real API server to a series of writes (answers/applies.json)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.paths import ANSWERS as RECORDED

Object = dict[str, Any]

APPLIES = json.loads((RECORDED / "applies.json").read_text())
GENERATION = "deprecated.daemonset.template.generation"
TIME = "2026-01-01T00:00:00Z"


def steps(wanted: Callable[[Object], bool]) -> list[Any]:
    """The matching writes, each with its scenario and the object before the write."""
    found = []
    for scenario in APPLIES:
        before = None
        for number, step in enumerate(scenario["steps"]):
            before = step.get("before", before)
            if wanted(step):
                name = f"{scenario['name']}-{number}"
                found.append(pytest.param(scenario, step, before, id=name))
            before = step.get("after", before)
    return found
