from __future__ import annotations

from typing import Any

import pytest

from everynode.cli.planning.change import (
    Flags,
    apply_flags,
    changed_fields,
    parse_images,
    parse_limit,
)
from everynode.errors import UsageError, UserError
from tests.support.stage import daemonset

Object = dict[str, Any]


def paths(before: Object, after: Object) -> list[str]:
    return [each.path for each in changed_fields(before, after)]


def test_defaults_of_the_api_server_are_no_change() -> None:
    stored = daemonset(template={"spec": {"dnsPolicy": "ClusterFirst", "restartPolicy": "Always"}})
    assert changed_fields(stored, daemonset()) == []


def test_options_change_images_and_limits() -> None:
    before = daemonset(rolling={"maxUnavailable": 1})
    after = apply_flags(
        before, Flags({"*": "agent:v2"}, {"maxUnavailable": "10%", "partition": "4"})
    )
    assert changed_fields(before, after) == [
        ("template.spec.containers[agent].image", "agent:v1", "agent:v2"),
        ("updateStrategy.rollingUpdate.maxUnavailable", "1", "10%"),
        ("updateStrategy.rollingUpdate.partition", "", "4"),
    ]
    surging = apply_flags(before, Flags({}, {"maxSurge": "2"}))["spec"]["updateStrategy"]
    assert surging["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 2}
    assert apply_flags(before, Flags({}, {})) == before


def test_options_that_mean_nothing_are_refused() -> None:
    for text in ("many", "-1", "5 %", ""):
        with pytest.raises(UsageError, match="give a number of nodes or a percentage"):
            parse_limit("--partition", text)
    for pair in ("agent", "=a", "agent=", "agent=a b"):
        with pytest.raises(UsageError, match="write CONTAINER=IMAGE"):
            parse_images((pair,))
    on_delete = daemonset(updateStrategy={"type": "OnDelete"})
    with pytest.raises(UserError, match="OnDelete, which knows no partition"):
        apply_flags(on_delete, Flags({}, {"partition": "1"}))
    with pytest.raises(UserError, match="is a native DaemonSet"):
        apply_flags(daemonset(api_version="apps/v1"), Flags({}, {"partition": "1"}))
