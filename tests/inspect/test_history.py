from __future__ import annotations

from everynode.api.objects import ControllerRevision, ObjectMeta
from everynode.inspect.evaluate import evaluate
from everynode.inspect.history import StoredRevision, build_history
from everynode.inspect.snapshot import Snapshot
from tests.support.samples import NOW, advanced, revision, template


def stored(number: int, hash: str, name: str) -> StoredRevision:
    found = revision(template(), hash, name=name, number=number)
    return StoredRevision(found, ControllerRevision(metadata=ObjectMeta(name=name)))


def test_of_two_revisions_with_one_hash_the_newest_is_the_target_and_has_the_pods() -> None:
    evaluation = evaluate(Snapshot(advanced(template()), (), (), ()), NOW)
    target = evaluation.fleet.target
    history = build_history(
        [stored(5, target, "b"), stored(4, target, "a"), stored(2, "old", "c")],
        evaluation.plan,
        {target: 2, "old": 1},
    )
    shown = [(each.number, each.pods, each.target) for each in history]
    assert shown == [(2, 1, False), (4, 0, False), (5, 2, True)]
