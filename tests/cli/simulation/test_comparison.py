from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from everynode.cli.simulation.comparison import comparison_lines, parse_questions
from everynode.errors import UserError
from everynode.forecast.forecast import FailHow, forecast
from everynode.sim.plans.manifests import daemonset

TYPED: dict[str, Any] = {
    "files": ("agent.yaml",),
    "nodes": 10,
    "fail": "0",
    "fail_how": "never-ready",
    "notready": "0",
    "pull": "5s",
    "start": "20s",
    "stop": "10s",
    "hook": "0s",
    "label": (),
    "seed": 1,
    "compare": (),
}
MANIFEST = daemonset(rolling={"maxUnavailable": 1})


def asked(*compare: str, manifest: dict[str, Any] = MANIFEST) -> list[Any]:
    return parse_questions([manifest], TYPED | {"compare": compare})


def rolling(posed: Any) -> dict[str, Any]:
    found: dict[str, Any] = posed.question.new["spec"]["updateStrategy"]["rollingUpdate"]
    return found


def refused(*compare: str) -> str:
    with pytest.raises(UserError) as caught:
        asked(*compare)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_setting_of_the_rollout_changes_the_second_forecast_only() -> None:
    first, second = asked("maxUnavailable=30%", "minReadySeconds=5")
    assert rolling(first) == {"maxUnavailable": 1}
    assert rolling(second) == {"maxUnavailable": "30%"}
    assert second.question.new["spec"]["minReadySeconds"] == 5
    assert first.label == "agent.yaml"
    assert second.label == "agent.yaml with maxUnavailable=30%, minReadySeconds=5"


def test_surge_takes_the_place_of_unavailability_and_the_other_way_round() -> None:
    assert rolling(asked("maxSurge=2")[1]) == {"maxSurge": 2, "maxUnavailable": 0}
    surging = daemonset(rolling={"maxSurge": 1, "maxUnavailable": 0})
    assert rolling(asked("maxUnavailable=2", manifest=surging)[1]) == {
        "maxSurge": 0,
        "maxUnavailable": 2,
    }
    assert rolling(asked("maxSurge=2", "maxUnavailable=1")[1]) == {
        "maxSurge": 2,
        "maxUnavailable": 1,
    }


def test_every_assumption_can_be_another_one() -> None:
    second = asked("nodes=20", "fail=5%", "fail-how=pull", "start=1m", "seed=7")[1].question
    assert (second.nodes, second.failing, second.fail_how) == (20, 1, FailHow.PULL)
    assert (second.timing.start, second.seed) == (60.0, 7)


def test_another_manifest_is_the_second_forecast_with_settings_if_given(tmp_path: Path) -> None:
    other = tmp_path / "other=one.yaml"
    other.write_text(yaml.safe_dump(daemonset(rolling={"maxUnavailable": 3})), encoding="utf-8")
    second = asked(str(other), "fail=1")[1]
    assert rolling(second) == {"maxUnavailable": 3}
    assert second.question.failing == 1
    assert second.label == "other=one.yaml with fail=1"


def test_a_file_with_two_daemonsets_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "two.yaml"
    other.write_text(yaml.safe_dump_all([MANIFEST, MANIFEST]), encoding="utf-8")
    assert "give a file with one DaemonSet" in refused(str(other))


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    other = tmp_path / "agent.yaml"
    other.write_text(yaml.safe_dump(MANIFEST), encoding="utf-8")
    assert [each.label for each in asked(str(other))] == ["agent.yaml", str(other)]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (("maxUnavailible=3",), "did you mean maxUnavailable?"),
        (("colour=green",), "NAME=VALUE with one of the names maxUnavailable, maxSurge"),
        (("maxSurge=",), "NAME=VALUE with one of the names"),
        (("nodes=many",), "--compare nodes=many: give a whole number"),
        (("nodes=0",), "give a whole number"),
        (("fail-how=loudly",), "give one of crash, never-ready, pull"),
        (("fail=200",), "there are only 10 nodes"),
        (("start=soon",), "give a duration"),
        (("/nowhere.yaml",), "cannot read /nowhere.yaml"),
        (("a.yaml", "b.yaml"), "--compare takes one manifest"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_one_line(
    typed: tuple[str, ...], message: str
) -> None:
    assert message in refused(*typed)


def test_both_curves_have_the_same_scales_and_a_table_below_them() -> None:
    posed = asked("maxUnavailable=5")
    answers = [forecast(each.question) for each in posed]
    lines = [line for line, _ in comparison_lines(posed, answers, assumed=True)]
    assert lines[0] == "agent on 10 nodes: two forecasts"
    axes = [line for line in lines if line.startswith("        0 ")]
    assert len(axes) == 2
    assert axes[0] == axes[1]
    rows = {line.split()[0]: line.split()[1:] for line in lines[lines.index("") :] if line}
    assert rows["ending"] == ["complete", "complete"]
    assert rows["promised"] == ["1", "5"]
    assert rows["updated"] == ["10", "of", "10", "10", "of", "10"]
    assert "stuck" not in rows  # in neither
    assert lines[-2].startswith("A: Complete after 5 min 52 s")
    assert lines[-1].startswith("B: Complete after 1 min 12 s")
