from __future__ import annotations

import msgspec

from everynode.api.versions import decode_daemonset
from everynode.decide.revisions.target import Revision, choose_target
from everynode.sim.faults.next_release import with_next_default
from everynode.sim.plans.manifests import daemonset
from everynode.sim.plans.plan import Action, Plan
from everynode.sim.world import World, play

TEMPLATE = b'{"spec":{"containers":[{"name":"agent","image":"agent:v1"}]}}'
SPELLED = {"template": {"spec": {"hostUsers": True}}}


def test_a_template_grows_by_the_default_that_the_next_table_knows() -> None:
    assert with_next_default(TEMPLATE).endswith(b'"hostUsers":true}}')
    assert with_next_default(with_next_default(TEMPLATE)) == with_next_default(TEMPLATE)


def test_a_written_value_is_no_default() -> None:
    written = TEMPLATE.replace(b'{"spec":{', b'{"spec":{"hostUsers":false,')
    assert with_next_default(written) == written


def test_the_next_release_names_the_same_template_differently() -> None:
    ds = msgspec.structs.replace(decode_daemonset(daemonset()), template=TEMPLATE)
    this = choose_target(ds, [], {})
    following = choose_target(ds, [], {}, extra_defaults=with_next_default)
    assert this.target.hash != following.target.hash
    assert this.target.template == following.target.template == TEMPLATE


def test_only_the_next_release_takes_a_spelled_default_for_no_change() -> None:
    ds = msgspec.structs.replace(
        decode_daemonset(daemonset()), template=with_next_default(TEMPLATE)
    )
    stored = Revision("agent-v1", "v1", 1, TEMPLATE, uid="u1")
    assert choose_target(ds, [stored], {"v1": 3}).target.hash != "v1"
    assert (
        choose_target(ds, [stored], {"v1": 3}, extra_defaults=with_next_default).target.hash == "v1"
    )


def _deleted(world: World, actor: str) -> int:
    commits = [each for each in world.record.commits if each.kind == "pods"]
    mine = [each for each in commits if each.actor == actor and each.before is not None]
    return sum(each.after is None or each.after.terminating for each in mine)


def test_a_release_that_knows_a_default_ends_the_update_that_its_spelling_began() -> None:
    plan = Plan(
        1,
        nodes=4,
        manifests=(daemonset(rolling={"maxUnavailable": 1}),),
        actions=(
            Action("apply", at=8.0, args={"spec": SPELLED}),
            Action("release", at=9.5),
        ),
        quiet_at=30.0,
    )
    result, world = play(plan)
    assert _deleted(world, "controller-0.1") == 1  # this release does not have the new default
    assert _deleted(world, "controller-0.2") == 0
    assert [each for each in result.violations if each.time > 9.5] == []
    assert len({pod.hash for pod in world.record.cluster.pods.values()}) == 1
