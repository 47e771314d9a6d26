from __future__ import annotations

from typing import Any

import pytest

from everynode.forecast import ForecastError, forecast_rollout

Object = dict[str, Any]


def manifest(**changes: Any) -> Object:
    labels = {"app": "agent"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "agent", "image": "agent:2"}]},
            },
        },
        **changes,
    }


def test_the_same_arguments_give_the_same_answer() -> None:
    assert forecast_rollout(manifest(), nodes=5) == forecast_rollout(manifest(), nodes=5)


def test_the_old_manifest_may_be_given() -> None:
    assert forecast_rollout(manifest(), old=manifest(), nodes=2).ending == "unchanged"


async def test_a_program_with_a_running_event_loop_can_ask_too() -> None:
    assert forecast_rollout(manifest(), nodes=2).ending == "complete"


@pytest.mark.parametrize(
    ("new", "options", "text"),
    [
        (manifest(kind="Deployment"), {}, "give the manifest of a DaemonSet as a dict"),
        ("agent.yaml", {}, "give the manifest of a DaemonSet as a dict"),
        (manifest(apiVersion="apps/v2"), {}, "apiVersion is 'apps/v2': give one of apps/v1"),
        (manifest(metadata={}), {}, r"metadata\.name is missing"),
        (manifest(spec={}), {}, "agent: spec.template"),
        (manifest(spec=3), {}, "agent: spec"),
        (manifest(), {"nodes": 0}, "nodes is 0: give a number from 1 to 10,000"),
        (manifest(), {"nodes": 3, "failing": 4}, "failing is 4: give a number from 0 to 3"),
        (manifest(), {"old": manifest(metadata={"name": "b"})}, "two DaemonSets"),
        (manifest(), {"old": manifest(apiVersion="apps.kruise.io/v1beta1")}, "two different"),
    ],
)
def test_a_mistake_is_named(new: Any, options: Object, text: str) -> None:
    with pytest.raises(ForecastError, match=text):
        forecast_rollout(new, **options)
