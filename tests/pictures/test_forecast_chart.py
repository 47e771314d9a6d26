from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from everynode.forecast.answer import Forecast
from everynode.forecast.forecast import ForecastRequest, forecast
from everynode.forecast.prepared_manifest import with_previous_images
from everynode.pictures.forecast_chart import Drawn, draw_forecasts
from everynode.sim.plans.manifests import daemonset

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def answer() -> Forecast:
    made = daemonset(rolling={"maxUnavailable": 2})
    return forecast(ForecastRequest(old=with_previous_images(made), new=made, nodes=10))


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def heights(svg: str, classes: str) -> list[float]:
    """Where a curve stands after each step, in units from above."""
    found = re.search(rf'class="{classes}" d="([^"]+)"', svg)
    assert found is not None, classes
    return [float(each) for each in re.findall(r"(?:V|M[\d.]+ )([\d.]+)", found[1])]


def test_a_forecast_is_drawn_with_its_curves_and_its_promise(answer: Forecast) -> None:
    svg = draw_forecasts("agent on 10 nodes", [Drawn(answer, "", "Complete after 3 min.")])
    assert {"agent on 10 nodes", "Complete after 3 min.", "promised at most 2"} <= {*texts(svg)}
    updated = heights(svg, "curve state-5-line")
    assert updated == sorted(updated, reverse=True)  # upwards
    assert updated[0] - updated[-1] == 150
    assert "At most 2 nodes are down at once, 2 promised." in svg  # in the description
    assert svg.count('class="promise text-line"') == 2  # the line, and its key


def test_moments_without_a_node_down_between_two_are_not_drawn(answer: Forecast) -> None:
    assert sum(down == 0 for _, _, down in answer.curve) == 5
    drawn = heights(draw_forecasts("a", [Drawn(answer, "", "b")]), "curve thin state-6-line")
    # Two nodes are down but for the two seconds in which the first ones prove themselves.
    assert len(drawn) == 5


def test_two_forecasts_are_told_apart_by_more_than_colour(answer: Forecast) -> None:
    slower = Forecast(**{name: getattr(answer, name) for name in answer.__struct_fields__})
    drawn = [Drawn(answer, "agent.yaml", "One."), Drawn(slower, "other.yaml", "Two.")]
    svg = draw_forecasts("two", drawn)
    assert {"A: agent.yaml", "B: other.yaml", "promised at most A 2, B 2"} <= {*texts(svg)}
    assert 'class="curve state-2-line dashed"' in svg
    assert svg.index("agent.yaml: One. At most") < svg.index("other.yaml: Two. At most")


@pytest.mark.parametrize(
    ("seconds", "last"), [(1.3, "0:01"), (45.0, "0:40"), (900.0, "15:00"), (400_000.0, "96:00:00")]
)
def test_times_are_round_and_have_room(answer: Forecast, seconds: float, last: str) -> None:
    given = {name: getattr(answer, name) for name in answer.__struct_fields__}
    curve = ((0.0, 0, 1), (seconds, 10, 0))
    shown = Forecast(**given | {"curve": curve, "seconds": seconds})
    times = [each for each in texts(draw_forecasts("a", [Drawn(shown, "", "b")])) if ":" in each]
    assert times[0] == "0:00"
    assert times[-1] == last
    assert len(times) <= 6


@pytest.mark.parametrize("changes", [{"curve": ()}, {"curve": ((0.0, 0, 0),), "seconds": 0.0}])
def test_what_never_moved_has_a_chart_too(answer: Forecast, changes: dict[str, Any]) -> None:
    given = {name: getattr(answer, name) for name in answer.__struct_fields__} | changes
    ElementTree.fromstring(draw_forecasts("still", [Drawn(Forecast(**given), "", "Still.")]))


def test_a_large_fleet_makes_no_large_file(answer: Forecast) -> None:
    curve = tuple((float(time), time // 2, time % 7) for time in range(20_000))
    given = {name: getattr(answer, name) for name in answer.__struct_fields__}
    large = Forecast(**given | {"curve": curve, "nodes": 10_000, "seconds": 20_000.0})
    svg = draw_forecasts("large", [Drawn(large, "", "b"), Drawn(large, "", "b")])
    assert len(svg) < 60_000
