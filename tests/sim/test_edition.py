from __future__ import annotations

from everynode.decide import revisions
from everynode.sim.edition import NEXT, THIS, context, grown
from everynode.sim.manifest import daemonset
from everynode.sim.plan import Happening, Plan
from everynode.sim.world import World, play

TEMPLATE = b'{"spec":{"containers":[{"name":"agent","image":"agent:v1"}]}}'
SPELLED = {"template": {"spec": {"hostUsers": True}}}


def test_a_template_grows_by_the_default_that_the_next_table_knows() -> None:
    assert grown(TEMPLATE).endswith(b'"hostUsers":true}}')
    assert grown(grown(TEMPLATE)) == grown(TEMPLATE)


def test_a_written_value_is_no_default() -> None:
    written = TEMPLATE.replace(b'{"spec":{', b'{"spec":{"hostUsers":false,')
    assert grown(written) == written


def test_the_next_release_names_the_same_template_differently() -> None:
    this, following = (
        context(edition).run(revisions.revision_hash, TEMPLATE, None) for edition in (THIS, NEXT)
    )
    assert this != following


def test_only_the_next_release_takes_a_spelled_default_for_no_change() -> None:
    def same() -> bool:
        return revisions.digest(TEMPLATE) == revisions.digest(grown(TEMPLATE))

    assert not context(THIS).run(same)
    assert context(NEXT).run(same)


def _deleted(world: World, actor: str) -> int:
    commits = [each for each in world.record.commits if each.kind == "pods"]
    mine = [each for each in commits if each.actor == actor and each.before is not None]
    return sum(each.after is None or each.after.terminating for each in mine)


def test_a_release_that_knows_a_default_ends_the_update_that_its_spelling_began() -> None:
    plan = Plan(
        1,
        nodes=4,
        manifests=(daemonset(rolling={"maxUnavailable": 1}),),
        happenings=(
            Happening("apply", at=8.0, args={"spec": SPELLED}),
            Happening("release", at=9.5),
        ),
        quiet_at=30.0,
    )
    result, world = play(plan)
    assert _deleted(world, "controller-0.1") == 1  # this release does not know better
    assert _deleted(world, "controller-0.2") == 0
    assert [each for each in result.breaches if each.time > 9.5] == []
    assert len({pod.hash for pod in world.record.scene.pods.values()}) == 1
