"""Forecasts for Python programs: from manifests and numbers to a Forecast (docs/python.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from everynode.api.versions import flavour_of
from everynode.forecast.answer import Forecast, ForecastError
from everynode.forecast.forecast import ForecastRequest, forecast
from everynode.forecast.played_rollout import KINDS
from everynode.forecast.prepared_manifest import with_previous_images
from everynode.sim.plans.plan import Timing

Object = dict[str, Any]
MAX_NODES: Final = 10_000  # that a forecast plays in a few minutes


def forecast_rollout(
    new: Object,
    *,
    old: Object | None = None,
    nodes: int = 100,
    failing: int = 0,
    not_ready: int = 0,
    labels: Iterable[tuple[str, str, int]] = (),
    pull: float = 5.0,
    start: float = 20.0,
    stop: float = 10.0,
    hook: float = 0.0,
    seed: int = 1,
) -> Forecast:
    """Play the rollout of the DaemonSet manifest `new` and return how it went.

    `old` is the manifest that runs now; without it, the same as `new` with other images. The new
    version does not become ready on `failing` nodes, and `not_ready` nodes are silent from the
    start. `labels` gives nodes labels: key, value, on how many. `pull`, `start`, `stop` and `hook`
    are seconds per pod. Nothing outside this process is read or written, and the same arguments
    give the same answer. Raises ForecastError.
    """
    _check_manifest(new)
    before = with_previous_images(new) if old is None else old
    _check_manifest(before)
    check_versions_of_one(before, new)
    request = ForecastRequest(
        old=before,
        new=new,
        nodes=_number("nodes", nodes, least=1),
        failing=_number("failing", failing, most=nodes),
        not_ready=_number("not_ready", not_ready, most=nodes),
        labels=tuple(labels),
        timing=Timing(pull=pull, start=start, stop=stop),
        hook=hook,
        seed=seed,
    )
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return forecast(request)
    # Virtual time has an event loop of its own, and a thread can run one loop only: notebooks.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(forecast, request).result()


def check_versions_of_one(old: Object, new: Object) -> None:
    """Raise ForecastError if the manifests describe two DaemonSets."""
    names = old["metadata"]["name"], new["metadata"]["name"]
    if names[0] != names[1]:
        raise ForecastError(
            f"{names[0]} and {names[1]} are two DaemonSets, not two versions of one"
        )
    if flavour_of(old["apiVersion"]) is not flavour_of(new["apiVersion"]):
        raise ForecastError(f"{old['apiVersion']} and {new['apiVersion']} are two different kinds")


def _check_manifest(manifest: object) -> None:
    if not isinstance(manifest, dict) or manifest.get("kind") != "DaemonSet":
        raise ForecastError("give the manifest of a DaemonSet as a dict, such as yaml.safe_load's")
    if manifest.get("apiVersion") not in KINDS:
        raise ForecastError(
            f"apiVersion is {manifest.get('apiVersion')!r}: give one of {', '.join(KINDS)}"
        )
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise ForecastError("metadata.name is missing")


def _number(name: str, value: int, *, least: int = 0, most: int = MAX_NODES) -> int:
    if not least <= value <= most:
        raise ForecastError(f"{name} is {value}: give a number from {least:,} to {most:,}")
    return value
