from __future__ import annotations

from everynode.sim.checks.normalised_state import differences, normalised_state, pod_churn
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan
from everynode.sim.world import World, play


def _end(seed: int, *images: str) -> World:
    actions = tuple(
        Action("set-image", at=10.0 * number, args={"image": image})
        for number, image in enumerate(images, start=1)
    )
    quiet_at = 10.0 * len(images) + 5.0
    manifests = (daemonset(),)
    return play(Plan(seed, nodes=2, manifests=manifests, actions=actions, quiet_at=quiet_at))[1]


def _difference(one: World, other: World) -> list[str]:
    sets = [next(iter(world.record.cluster.sets.values())) for world in (one, other)]
    before, after = (
        normalised_state(world.record.cluster, ds)
        for world, ds in zip((one, other), sets, strict=True)
    )
    return differences(before, after)


def test_worlds_with_the_same_spec_are_alike_whatever_their_uids_and_history() -> None:
    assert _difference(_end(1, "agent:v2"), _end(2, "agent:v3", "agent:v2")) == []


def test_worlds_with_other_images_differ_on_every_node() -> None:
    found = _difference(_end(1, "agent:v2"), _end(1, "agent:v3"))
    assert [text.split()[0] for text in found] == ["node-0001", "node-0002"]


def test_every_pod_that_controllers_create_or_delete_is_a_move() -> None:
    assert pod_churn(_end(1, "agent:v2").record) == {
        (node, what): count
        for node in ("node-0001", "node-0002")
        for what, count in (("created", 2), ("deleted", 1))
    }
