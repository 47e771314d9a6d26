from __future__ import annotations

from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening, Plan
from everynode.sim.world import play

MANIFESTS = (daemonset(rolling={"maxUnavailable": 1}),)
# Once it is updated, the pod is not where a create would collide with it.
UPDATE = Happening("set-image", at=10.0, args={"image": "agent:v2"})


def test_an_orphan_that_is_in_no_watch_is_found_within_a_quarter_of_an_hour() -> None:
    orphan = Happening("orphan-pod", at=40.0, args={"node": 0, "strip": True})
    plan = Plan(1, nodes=2, manifests=MANIFESTS, happenings=(UPDATE, orphan), quiet_at=1000.0)
    result, world = play(plan)
    assert result.kept, result.breaches
    assert 640.0 < world.record.changed_at < 1000.0
    assert len(world.record.scene.pods) == 2
    assert all(pod.hash for pod in world.record.scene.pods.values())
