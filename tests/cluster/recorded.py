"""What a real API server made of a series of writes, recorded in answers/applies.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Object = dict[str, Any]

APPLIES = json.loads((Path(__file__).parent / "answers" / "applies.json").read_text())
GENERATION = "deprecated.daemonset.template.generation"
TIME = "2026-01-01T00:00:00Z"


def steps(wanted: Callable[[Object], bool]) -> list[Any]:
    """The writes that are wanted, each with its scenario and the object as it was before."""
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
