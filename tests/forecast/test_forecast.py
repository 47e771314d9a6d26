from __future__ import annotations

from typing import Any

import pytest

from everynode.forecast.answer import Forecast, ForecastError
from everynode.forecast.forecast import FailHow, ForecastRequest, forecast
from everynode.forecast.prepared_manifest import with_previous_images
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Timing

NODES = 10


def foresee(manifest: dict[str, Any], **more: Any) -> Forecast:
    question = ForecastRequest(
        old=with_previous_images(manifest), new=manifest, **{"nodes": NODES, **more}
    )
    return forecast(question)


def rolling(**fields: Any) -> dict[str, Any]:
    return daemonset(rolling=fields)


@pytest.mark.parametrize(
    "version", ["apps/v1", "apps.kruise.io/v1beta1", "apps.kruise.io/v1alpha1"]
)
def test_every_kind_and_version_is_rolled_out(version: str) -> None:
    found = foresee(daemonset(rolling={"maxUnavailable": 2}, api_version=version))
    assert (found.ending, found.updated, found.nodes) == ("complete", NODES, NODES)
    assert found.most_down == found.budget == 2
    # Five rounds of stopping for 10 s, pulling for 5 s and starting for 20 s.
    assert found.seconds == pytest.approx(5 * 35, abs=5)
    assert found.writes["pods"] == 2 * NODES


def test_images_that_are_never_pulled_are_taken_to_be_on_the_nodes() -> None:
    container = {"name": "agent", "image": "agent:v2", "imagePullPolicy": "Never"}
    found = foresee(daemonset(template={"containers": [container]}))
    assert (found.ending, found.updated) == ("complete", NODES)


def test_the_curve_goes_from_nothing_to_all() -> None:
    curve = foresee(rolling(maxUnavailable=2)).curve
    assert curve[0] == (0.0, 0, 2)
    assert curve[-1][1:] == (NODES, 0)
    assert [time for time, _, _ in curve] == sorted(time for time, _, _ in curve)
    assert max(down for _, _, down in curve) == 2


def test_failing_nodes_stop_it_once_they_use_up_the_budget() -> None:
    found = foresee(rolling(maxUnavailable=2), failing=4)
    assert found.ending == "stopped"
    assert len(found.stuck) == found.most_down == 2
    assert found.updated + len(found.stuck) + found.to_come == NODES
    assert "NotReady" in found.message


def test_fewer_failing_nodes_than_the_budget_stay_behind() -> None:
    found = foresee(rolling(maxUnavailable=2), failing=1)
    assert (found.ending, found.updated, len(found.stuck)) == ("incomplete", NODES - 1, 1)


def test_silent_nodes_are_left_alone() -> None:
    found = foresee(rolling(maxUnavailable=2), not_ready=2)
    assert (found.ending, found.updated, found.nodes) == ("complete", NODES - 2, NODES)
    assert len(found.silent) == 2


def test_a_partition_holds() -> None:
    found = foresee(rolling(partition="70%"))
    assert (found.ending, found.updated, found.held, found.partition) == ("held", 3, 7, 7)


def test_a_selector_holds_what_it_does_not_select() -> None:
    manifest = rolling(selector={"matchLabels": {"canary": "true"}})
    found = foresee(manifest, labels=(("canary", "true", 3),))
    assert (found.ending, found.updated, found.held, found.selector) == ("held", 3, 7, True)


@pytest.mark.parametrize("fields", [{"paused": True}, {"partition": "100%"}])
def test_nothing_is_updated_where_all_is_held(fields: dict[str, Any]) -> None:
    found = foresee(rolling(**fields))
    assert (found.ending, found.updated, found.seconds, found.writes_per_pod) == ("held", 0, 0, 0)


def test_on_delete_waits_until_the_pod_is_deleted() -> None:
    found = foresee(daemonset(updateStrategy={"type": "OnDelete"}))
    assert (found.ending, found.held, found.on_delete) == ("held", NODES, True)


def test_a_surge_makes_no_node_unavailable() -> None:
    found = foresee(rolling(maxSurge=3, maxUnavailable=0))
    assert (found.ending, found.most_down, found.most_doubled) == ("complete", 0, 3)
    assert found.surging


def test_failing_surge_pods_leave_the_old_ones_running() -> None:
    found = foresee(rolling(maxSurge=2, maxUnavailable=0), failing=4)
    assert (found.ending, found.most_down, len(found.stuck)) == ("stopped", 0, 2)


def test_pods_updated_in_place_fail_as_well() -> None:
    manifest = daemonset(
        rolling={"rollingUpdateType": "InPlaceIfPossible", "maxUnavailable": 2}, min_ready=30
    )
    found = foresee(manifest, failing=1)
    assert (found.ending, found.most_down, len(found.stuck)) == ("incomplete", 2, 1)


def test_min_ready_seconds_and_hooks_take_their_time() -> None:
    hook = {"preDelete": {"labelsHandler": {"hook": "yes"}}}
    manifest = daemonset(min_ready=30, lifecycle=hook, labels={"hook": "yes"})
    found = foresee(manifest, nodes=3, hook=15.0)
    assert found.ending == "complete"
    assert found.seconds == pytest.approx(3 * (15 + 35 + 30), abs=9)


def test_two_versions_that_mean_the_same_change_nothing() -> None:
    manifest = rolling(maxUnavailable=1)
    found = forecast(ForecastRequest(old=manifest, new=manifest, nodes=3))
    assert (found.ending, found.updated) == ("unchanged", 0)


def test_the_same_question_has_the_same_answer() -> None:
    manifest = rolling(maxUnavailable=1)
    one, two, other = (foresee(manifest, failing=2, seed=seed) for seed in (1, 1, 2))
    assert one == two
    assert one.stuck != other.stuck


def test_durations_are_those_that_are_given() -> None:
    found = foresee(rolling(), nodes=2, timing=Timing(pull=1.0, start=2.0, stop=3.0))
    assert found.seconds == pytest.approx(2 * 6, abs=2)


def test_a_template_that_no_node_wants_is_told() -> None:
    manifest = daemonset(template={"nodeSelector": {"gpu": "true"}})
    with pytest.raises(ForecastError, match="no node would get a pod"):
        foresee(manifest)
    assert foresee(manifest, labels=(("gpu", "true", 4),)).nodes == 4


def test_pods_that_the_new_template_does_not_want_are_counted() -> None:
    narrowed = daemonset()
    narrowed["spec"]["template"]["spec"]["nodeSelector"] = {"pool": "typo"}
    found = forecast(ForecastRequest(old=daemonset(), new=narrowed, nodes=NODES))
    assert (found.removed, found.most_down, found.updated) == (NODES, NODES, 0)


def test_what_the_server_refuses_is_told() -> None:
    manifest = rolling()
    manifest["spec"]["template"]["spec"]["containers"] = []
    with pytest.raises(ForecastError, match="containers"):
        foresee(manifest)


def test_unknown_fields_are_reported() -> None:
    with pytest.raises(ForecastError, match=r'unknown field ".*maxUnavailble"'):
        foresee(rolling(maxUnavailble=3))


def test_the_older_version_of_the_api_can_be_replaced_by_the_newer() -> None:
    new = daemonset(image="agent:v2")
    old = daemonset(api_version="apps.kruise.io/v1alpha1")
    assert forecast(ForecastRequest(old=old, new=new, nodes=3)).ending == "complete"


def test_a_version_that_cannot_run_is_told() -> None:
    manifest = rolling()
    manifest["spec"]["template"]["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "1000"}
    }
    with pytest.raises(ForecastError, match="does not become available"):
        foresee(manifest, nodes=2)


@pytest.mark.parametrize(
    ("version", "fields", "most"),
    [
        ("apps/v1", {}, 2.2),
        ("apps.kruise.io/v1beta1", {}, 2.2),
        ("apps.kruise.io/v1beta1", {"rollingUpdateType": "InPlaceIfPossible"}, 4.0),
    ],
)
def test_a_moved_node_costs_few_writes_status_and_events_included(
    version: str, fields: dict[str, Any], most: float
) -> None:
    made = daemonset(rolling={"maxUnavailable": "10%", **fields}, api_version=version)
    quick = Timing(pull=0.0, start=1.0, stop=1.0)
    found = foresee(made, nodes=300, timing=quick)
    assert found.updated == 300
    assert found.writes_per_pod <= most


@pytest.mark.parametrize("version", ["apps/v1", "apps.kruise.io/v1beta1"])
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        (FailHow.CRASH, "CrashLoopBackOff"),
        (FailHow.NEVER_READY, "NotReady"),
        (FailHow.PULL, "ImagePullBackOff"),
    ],
)
def test_the_new_version_fails_as_asked(how: FailHow, reason: str, version: str) -> None:
    made = daemonset(rolling={"maxUnavailable": 2}, api_version=version)
    found = foresee(made, failing=NODES, fail_how=how)
    assert (found.ending, found.updated, len(found.stuck)) == ("stopped", 0, 2)
    assert reason in found.message
