"""Orders among equals: they change what comes first of equal candidates, and nothing else."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest

from dovetail.core.request import Group, Request
from dovetail.ledger import Ledger
from dovetail.service import asking
from dovetail.service.claiming.equals import Dealer, Order, Shifted
from dovetail.service.snapshots import SnapshotKeeper
from tests.ledger.world import claim, make

GROUP = Group(suffix="", resources={"VCPU": 1})
RANKED = (("spread", 1),)


@pytest.fixture
def keeper(ledger: Ledger) -> SnapshotKeeper:
    """Forty hosts, of which every fourth is half full."""
    for number in range(40):
        host = make(ledger, f"host{number:02}", VCPU=4)
        if number % 4 == 0:
            claim(ledger, (host, {"VCPU": 2}))
    return SnapshotKeeper(ledger)


async def found(keeper: SnapshotKeeper, order: Order | None, **more: Any) -> list[tuple[int, int]]:
    """Scores (0 without a ranking) and rows, as they come."""
    search, rows = await asking.find(keeper, Request(groups=(GROUP,), **more), 10, order=order)
    scores = [each["total"] for each in asking.scores_of(search)] or [0] * len(rows)
    return list(zip(scores, rows[:, 0].tolist(), strict=True))


@pytest.mark.parametrize("order", [Dealer(7).deal(None), Shifted(0.4)])
async def test_without_a_ranking_all_are_equal(keeper: SnapshotKeeper, order: Order) -> None:
    plain, other = await found(keeper, None), await found(keeper, order)
    assert other != plain
    assert sorted(other) == sorted(plain)


@pytest.mark.parametrize("order", [Dealer(7).deal(None), Shifted(0.4)])
async def test_better_candidates_stay_before_worse_ones(
    keeper: SnapshotKeeper, order: Order
) -> None:
    plain = await found(keeper, None, rank=RANKED)
    other = await found(keeper, order, rank=RANKED)
    assert other != plain
    assert len({score for score, _ in plain}) == 2
    scores = [score for score, _ in other]
    assert scores == [score for score, _ in plain]
    for _, equals in groupby(zip(plain, other, strict=True), key=lambda pair: pair[0][0]):
        theirs, ours = zip(*equals, strict=True)
        assert sorted(theirs) == sorted(ours)


async def test_a_limit_keeps_any_of_the_best(keeper: SnapshotKeeper) -> None:
    everything = await found(keeper, None, rank=RANKED)
    top = everything[0][0]
    best = {row for score, row in everything if score == top}
    seen: set[int] = set()
    for seed in range(20):
        limited = await found(keeper, Dealer(seed).deal(5), rank=RANKED, limit=5)
        assert [score for score, _ in limited] == [top] * 5
        seen |= {row for _, row in limited}
    assert seen <= best
    assert len(seen) > len(best) / 2, "not always the same five"


async def test_a_seed_gives_the_same_order_again(keeper: SnapshotKeeper) -> None:
    first = await found(keeper, Dealer(7).deal(10), limit=10)
    assert await found(keeper, Dealer(7).deal(10), limit=10) == first
    assert await found(keeper, Dealer(8).deal(10), limit=10) != first


async def test_nobody_is_dealt_what_another_was_until_all_was_dealt(keeper: SnapshotKeeper) -> None:
    dealer = Dealer()
    dealt = [await found(keeper, dealer.deal(10), limit=10) for _ in range(8)]
    for four in (dealt[:4], dealt[4:]):
        assert len({row for answer in four for _, row in answer}) == 40
    assert dealt[:4] != dealt[4:]


async def test_a_shift_goes_around(keeper: SnapshotKeeper) -> None:
    rows = [row for _, row in await found(keeper, None)]
    shifted = [row for _, row in await found(keeper, Shifted(0.25), limit=1)]
    assert shifted == [rows[10]]
