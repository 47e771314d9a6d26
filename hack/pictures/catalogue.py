"""Every picture by its file in docs/pictures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from hack.pictures import benchmark, canary, forecast, migration, rollout, surge

FOLDER: Final = Path(__file__).parents[2] / "docs" / "pictures"
PICTURES: Final[dict[str, Callable[[], str]]] = {
    "rollout.svg": rollout.draw,
    "forecast.svg": forecast.draw,
    "migration.svg": migration.draw,
    "benchmark.svg": benchmark.draw,
    "surge.svg": surge.draw,
    "canary-by-partition.svg": canary.draw_by_partition,
    "canary-by-selector.svg": canary.draw_by_selector,
    "canary-combined.svg": canary.draw_combined,
}
