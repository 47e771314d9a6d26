from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from everynode.dashboard.changes import apply, diff, is_empty
from everynode.dashboard.model import PageModel

CELLS = st.lists(st.integers(0, 8), min_size=4, max_size=4).map(bytes)
SETS = st.fixed_dictionaries(
    {"state": st.sampled_from(["progressing", "complete"]), "counts": st.integers(0, 3)}
)
MODELS = st.builds(
    lambda cells, view: PageModel(
        set={**view, "now": 1}, names=("a", "b", "c", "d"), labels={}, states=cells
    ),
    CELLS,
    SETS,
)


@given(st.lists(MODELS, min_size=2, max_size=6))
def test_a_snapshot_and_its_batches_make_the_last_snapshot(models: list[PageModel]) -> None:
    shown = models[0]
    for before, after in pairwise(models):
        batch = diff(before, after)
        assert batch is not None
        assert is_empty(batch) == (before == after)
        shown = apply(shown, batch)
    assert shown == models[-1]


def model(**more: object) -> PageModel:
    given: dict[str, object] = {
        "set": {"now": 1},
        "names": ("a",),
        "labels": {},
        "states": b"\1",
    } | more
    return PageModel(**given)  # type: ignore[arg-type]


def test_time_alone_is_no_news_and_other_nodes_need_a_snapshot() -> None:
    later = diff(model(), model(set={"now": 2}))
    assert later is not None
    assert is_empty(later)
    assert diff(model(), model(names=("a", "b"), states=b"\1\1")) is None
