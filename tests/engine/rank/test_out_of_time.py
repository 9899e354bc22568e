"""A limited ranking that is given up has the best of the trees that it came to."""

from __future__ import annotations

from unittest.mock import patch

from dovetail.core.request import Group, Request
from dovetail.engine.rank import RankedSearch, Typical
from dovetail.engine.work import finished
from tests.engine.answers import loaded
from tests.engine.forest import grow, node

REQUEST = Request(groups=(Group(resources={"VCPU": 1}),), limit=3, rank=(("spread", 1),))


def test_the_best_so_far_is_answered_and_the_next_goes_on_from_there() -> None:
    forest = grow(*(node(f"host{at}", VCPU=2 + at) for at in range(20)))
    snapshot = loaded(forest)
    with patch("dovetail.engine.rank.best_per_tree.CELLS_PER_STEP", 4):
        search = RankedSearch(snapshot, REQUEST, Typical())
        assert len(finished(search.best_so_far(3))) == 0
        steps = search.candidates(3)
        while search.unranked_trees != 12:
            next(steps)
            found = finished(search.best_so_far(3))
    # Of the first eight hosts the largest, which are emptiest afterwards.
    assert found[:, 0].tolist() == [7, 6, 5]
    assert len(search.scores) == 3
    again = RankedSearch(snapshot, REQUEST, Typical())
    assert best_of(again) == best_of(RankedSearch(loaded(forest), REQUEST, Typical()))
    assert again.unranked_trees == 0


def best_of(search: RankedSearch) -> list[list[int]]:
    (best,) = [block for block in search.candidates(3) if block is not None]
    found: list[list[int]] = best.tolist()
    return found


def test_the_best_so_far_of_many_is_told_without_looking_at_them_again() -> None:
    """One of each tree: combining and scoring trees is what there was no time for."""
    snapshot = loaded(
        grow(*(node(f"h{at}", *(node(f"h{at}-{n}", VF=2) for n in range(4))) for at in range(20)))
    )
    groups = tuple(Group(suffix=suffix, resources={"VF": 1}) for suffix in ("_A", "_B"))
    request = Request(groups=groups, rank=(("fragmentation", 1),))
    typical = Typical(((request, 1),))
    search = RankedSearch(snapshot, request, typical)
    (whole,) = [block for block in search.candidates(1000) if block is not None]
    assert len(whole) == 20 * 16
    best = dict(zip(map(tuple, whole.tolist()), search.scores, strict=True))
    with patch.object(RankedSearch, "first_per_tree", side_effect=AssertionError):
        found = finished(search.best_so_far(1000))
    assert len({int(snapshot.tree.values[row]) for row in found[:, 0]}) == len(found) == 20
    assert search.scores == [best[tuple(rows)] for rows in found.tolist()]
    assert {each["total"] for each in search.scores} == {max(s["total"] for s in best.values())}
