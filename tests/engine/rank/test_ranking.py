"""Ranked answers of random forests, against ranking done slowly and plainly."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.request import Group, Request
from dovetail.engine import Snapshot, search
from dovetail.engine.rank import POLICIES, Ranking, Typical, best, losses
from tests.engine.answers import by_uuid, carry_over, loaded
from tests.engine.forest import Forest, grow, node
from tests.engine.rank.obvious import Judge, Line
from tests.engine.strategies import (
    alike_forests,
    examples,
    forests,
    histories,
    one_of,
    related_requests,
    requests,
)

Terms = tuple[tuple[str, int], ...]

terms = one_of(
    *(((name, 1),) for name in POLICIES),
    (("fragmentation", 3), ("spread", 1)),
    (("pack", 2), ("best-fit", 1), ("first-fit", 5)),
)
any_request = st.one_of(requests(), related_requests()).map(by_uuid)
typicals = st.lists(st.tuples(any_request, one_of(1, 2, 7)), max_size=4).map(Typical.of)
fleets = st.one_of(forests(), alike_forests())


def ids(snapshot: Snapshot, rows: Sequence[Sequence[int]]) -> list[Line]:
    """Rows change places when a fleet does; ids do not."""
    return [tuple(int(snapshot.provider_id.values[row]) for row in line) for line in rows]


def unranked(snapshot: Snapshot, request: Request) -> list[Line]:
    blocks = search(snapshot, request).candidates(request.limit)
    found = [block for block in blocks if block is not None]
    return ids(snapshot, [line for block in found for line in block.tolist()])


def ranked(
    snapshot: Snapshot, request: Request, ranking: Ranking, limit: int | None = None
) -> list[Line]:
    return ids(snapshot, best(snapshot, request, ranking, limit).rows.tolist())


@pytest.mark.parametrize("few", [0, losses.FEW_TREES])
@examples(400)
@given(fleets, any_request, terms, typicals)
def test_the_order_is_that_of_scores_worked_out_plainly(
    few: int, forest: Forest, request: Request, by: Terms, typical: Typical
) -> None:
    """Whether candidates and trees are measured one by one, or one of those that are alike."""
    snapshot = loaded(forest)
    judge = Judge(forest, search(snapshot, request), typical)
    expected = judge.order(by, unranked(snapshot, request))
    with patch.object(losses, "FEW_TREES", few):
        found = best(snapshot, request, Ranking(by, typical))
    assert ids(snapshot, found.rows.tolist()) == expected
    for name, _ in by:
        assert found.parts[name].tolist() == [judge.points(name, line) for line in expected]
    totals = [sum(w * judge.points(name, line) for name, w in by) for line in expected]
    assert found.scores.tolist() == totals


@examples(200)
@given(fleets, any_request, terms, typicals)
def test_a_limit_gives_the_beginning_of_the_whole_answer(
    forest: Forest, request: Request, by: Terms, typical: Typical
) -> None:
    snapshot, ranking = loaded(forest), Ranking(by, typical)
    whole = best(snapshot, request, ranking)
    for limit in (1, 2, 3, 10):
        found = best(snapshot, request, ranking, limit)
        assert found.rows.tolist() == whole.rows[:limit].tolist()
        assert found.scores.tolist() == whole.scores[:limit].tolist()
        assert {name: part.tolist() for name, part in found.parts.items()} == {
            name: part[:limit].tolist() for name, part in whole.parts.items()
        }


@examples(200)
@given(histories(), any_request, terms, typicals)
def test_what_is_kept_from_earlier_requests_changes_nothing(
    history: list[Forest], request: Request, by: Terms, typical: Typical
) -> None:
    snapshot, ranking = loaded(history[0]), Ranking(by, typical)
    before = history[0]
    for after in history:
        carry_over(snapshot, before, after)
        for limit in (1, 3, None):
            kept = ranked(snapshot, request, ranking, limit)
            assert kept == ranked(loaded(after), request, ranking, limit)
        before = after


@pytest.mark.parametrize("name", POLICIES)
def test_the_default_keeps_the_order_and_the_others_only_change_it(name: str) -> None:
    forest = grow(*(node(f"h{n}", VCPU=8 + n % 3, MEMORY_MB=16 + n % 5) for n in range(20)))
    request = Request(groups=(Group(resources={"VCPU": 2, "MEMORY_MB": 4}),))
    snapshot = loaded(forest)
    found = ranked(snapshot, request, Ranking(((name, 1),)))
    assert sorted(found) == sorted(unranked(snapshot, request))
    if name == "first-fit":
        assert found == unranked(snapshot, request)
