"""Replay files, and the stored ones of earlier bugs."""

from __future__ import annotations

from pathlib import Path

import pytest

from everynode.api.keys import V1BETA1
from everynode.sim.explore.replay import ReplayError, describe_plan, load, save
from everynode.sim.plans.generate import generate_plan
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan, encode
from everynode.sim.world import play
from tests.support.paths import ROOT

REPLAYS = sorted((ROOT / "tests" / "sim" / "replays").glob("*.json"))


@pytest.mark.parametrize("path", REPLAYS, ids=lambda path: path.stem)
def test_what_once_broke_a_promise_keeps_it_now(path: Path) -> None:
    result, _ = play(load(path))
    assert result.violations == ()


@pytest.mark.parametrize("seed", [3, 20, 41])
def test_a_file_gives_back_the_plan(seed: int, tmp_path: Path) -> None:
    plan = generate_plan(seed)
    path = save(plan, tmp_path)
    assert path.name == f"replay-seed-{seed}.json"
    assert load(path) == plan


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"no", "is not a replay file"),
        (b'{"seed": 1}', "is not a replay file"),
        (b'{"seed":1,"nodes":0,"manifests":[]}', "it needs a node"),
        (b"[" * 200_000, "is not a replay file"),
        (b'{"seed":1,"nodes":1,"manifests":[' + b'{"a":' * 50_000, "is not a replay file"),
        (b'{"seed":1,"nodes":1,"manifests":[],"name":"\xff"}', "is not a replay file"),
        (b'{"seed":1,"nodes":1,"manifests":[],"name":"\\ud800"}', "is not a replay file"),
        (b'{"seed":1,"nodes":1e999,"manifests":[]}', "is not a replay file"),
        (b"\0", "is not a replay file"),
        (b'{"seed":1,"nodes":999999999,"manifests":[]}', "10000 nodes"),
        (b'{"seed":1,"nodes":1,"manifests":[{"apiVersion":"apps/v1"}]}', "a name and a template"),
        (
            b'{"seed":1,"nodes":1,"manifests":[{"apiVersion":"apps/v1","metadata":7,"spec":[]}]}',
            "a name and a template",
        ),
        (b'{"seed":1,"nodes":1,"manifests":[{"apiVersion":"v1"}]}', "has no DaemonSet"),
        (
            b'{"seed":1,"nodes":1,"manifests":[],"happenings":[{"what":"fly"}]}',
            "'fly' is not an action",
        ),
        (
            b'{"seed":1,"nodes":1,"manifests":[],"happenings":[{"what":"crash","args":{"index":"x"}}]}',
            "the arguments of 'crash'",
        ),
        (
            b'{"seed":1,"nodes":1,"manifests":[],"happenings":[{"what":"crash","at":1e12}]}',
            "2592000 seconds, and not longer",
        ),
    ],
)
def test_a_file_that_cannot_be_played_is_refused_in_one_line(
    text: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(text)
    with pytest.raises(ReplayError, match=message) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match=r"missing\.json: No such file"):
        load(tmp_path / "missing.json")
    with pytest.raises(ReplayError, match="Is a directory"):
        load(tmp_path)
    with pytest.raises(ReplayError, match="embedded null byte"):
        load(tmp_path / "a\0b")


def test_a_plan_is_described_line_by_line() -> None:
    actions = (
        Action("crash-after", at_request=7),
        Action("set-image", at=8.0, args={"image": "agent:v2"}),
    )
    manifest = daemonset(rolling={"maxUnavailable": "50%"}, min_ready=3)
    plan = Plan(5, nodes=2, manifests=(manifest,), actions=actions, quiet_at=20.0)
    assert list(describe_plan(plan)) == [
        "2 nodes, 1 controller, seed 5",
        f"DaemonSet agent ({V1BETA1}): RollingUpdate maxUnavailable=50% minReadySeconds=3",
        "set-image at 8.0 s (image=agent:v2)",
        "crash-after at call 7",
        "nothing more goes wrong from 20.0 s on",
    ]


def test_the_name_of_a_file_has_no_strange_characters(tmp_path: Path) -> None:
    plan = Plan(5, nodes=1, manifests=(), name="surge, crash-after at call 7")
    assert save(plan, tmp_path).name == "replay-surge-crash-after-at-call-7.json"
    assert (tmp_path / "replay-surge-crash-after-at-call-7.json").read_bytes() == encode(plan)
