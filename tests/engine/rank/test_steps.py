"""However much was learned, ranking goes on in small steps: between two of them others get a turn.

Work is counted, not timed: calls of functions, and cells of the tables that trees are measured in.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from dovetail.core.request import Group, Request
from dovetail.engine import Snapshot
from dovetail.engine.rank import PressureWatch, RankedSearch, Typical
from dovetail.engine.rank.demand import Cube, TypicalDemand
from dovetail.engine.rank.trees import Trees
from tests.engine.answers import loaded
from tests.engine.forest import Inventory, Node, grow, node

HOSTS = 300
MOST_CALLS = 150_000
"""In one step: some tens of milliseconds."""

MOST_CELLS = 2**21
"""The same."""

MODELS = ("NET1", "NET2", "LARGE")


class Effort:
    """What was done since it was last asked."""

    def __init__(self) -> None:
        self.calls = self.cells = 0

    def count(self, frame: object, event: str, arg: object) -> None:
        self.calls += event in {"call", "c_call"}

    def since_last(self) -> tuple[int, int]:
        found = self.calls, self.cells
        self.calls = self.cells = 0
        return found


@contextmanager
def effort() -> Iterator[Effort]:
    counted, fits = Effort(), TypicalDemand._fits

    def counting(demand: TypicalDemand, trees: Trees) -> Cube:
        found = fits(demand, trees)
        counted.cells += found.size
        return found

    with patch.object(TypicalDemand, "_fits", counting):
        before = sys.getprofile()
        sys.setprofile(counted.count)
        try:
            yield counted
        finally:
            sys.setprofile(before)


def host(at: int) -> Node:
    """No two are alike."""
    devices = [
        node(
            f"h{at}-{place}",
            FPGA=Inventory(8, used=(at + place) % 4),
            VF=Inventory(64, used=(at * 7 + place) % 32),
            traits=[MODELS[(at + place) % 3]],
        )
        for place in range(4)
    ]
    return node(f"h{at}", *devices, VCPU=96, MEMORY_MB=Inventory(8192, used=at))


def narrow(at: int) -> Request:
    groups = (
        Group(resources={"VCPU": 1 + at % 60, "MEMORY_MB": 8 + at}),
        Group(suffix="_G", resources={"FPGA": 1 + at % 8, "VF": 1 + at // 8 % 40}),
        Group(suffix="_H", resources={"FPGA": 1 + at % 3, "VF": 1 + at % 29}),
    )
    return Request(groups=groups)


def wide(at: int) -> Request:
    """Asks for much, in groups that are all different."""
    groups = [
        Group(
            suffix=f"_{place}",
            resources={"FPGA": 1 + (at + place) % 2, "VF": 1 + (at * 5 + place) % 40},
            required=(frozenset([MODELS[(at + place) % 3]]),) if place % 2 else (),
        )
        for place in range(60)
    ]
    return Request(groups=(Group(resources={"VCPU": 1 + at}), *groups))


def one_wide(at: int) -> Request:
    return narrow(at) if at else wide(at)


@pytest.fixture(scope="module")
def snapshot() -> Snapshot:
    return loaded(grow(*(host(at) for at in range(HOSTS))))


@pytest.mark.parametrize("shape", [narrow, wide, one_wide])
@pytest.mark.parametrize("policy", ["fragmentation", "scarcity"])
@pytest.mark.parametrize("limit", [10, None])
def test_no_step_does_much(snapshot: Snapshot, shape: Any, policy: str, limit: int | None) -> None:
    typical = Typical.of([(shape(at), 1 + at % 3) for at in range(1000)])
    group = Group(suffix="_G", resources={"FPGA": 1, "VF": 2})
    request = Request(groups=(Group(resources={"VCPU": 1}), group), rank=((policy, 1),))
    search = RankedSearch(snapshot, request, typical, PressureWatch())
    steps = []
    with effort() as counted:
        for _ in search.candidates(limit):
            steps.append(counted.since_last())
        steps.append(counted.since_last())
    assert search.scores
    assert max(calls for calls, _ in steps) < MOST_CALLS
    assert 0 < max(cells for _, cells in steps) < MOST_CELLS
