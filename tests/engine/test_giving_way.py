"""However many groups a request has, its search is made of small steps and does not recurse.

Nothing is timed. The work of a step is counted in calls, of Python and of C: a step that goes
through groups, options or trees one by one makes as many as there are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any

import pytest

from dovetail.core.request import Affinity, Group, Request
from dovetail.engine import Search, Snapshot
from dovetail.engine.explain.fit_test.fits import how_many
from dovetail.engine.rank import RankedSearch, Typical
from tests.engine.answers import loaded
from tests.engine.forest import grow, node

MOST_CALLS = 20_000
"""In one step: some milliseconds."""
HOSTS = 300
MANY = 1500
"""More than Python's calls go deep."""


def groups(count: int, **resources: int) -> tuple[Group, ...]:
    return tuple(Group(suffix=f"_{at}", resources=resources) for at in range(count))


def suffixes(asked: Iterable[Group]) -> frozenset[str]:
    return frozenset(group.suffix for group in asked)


def isolated(asked: tuple[Group, ...], limit: int | None = None) -> Request:
    return Request(groups=asked, limit=limit, isolated=suffixes(asked))


def test_a_thousand_groups_that_fit_are_found() -> None:
    snapshot = loaded(grow(node("host", VCPU=MANY)))
    found = list(Search(snapshot, Request(groups=groups(MANY, VCPU=1), limit=1)))
    assert [each.allocations for each in found] == [{snapshot.uuid(0): {"VCPU": MANY}}]


def test_a_thousand_isolated_groups_have_a_device_each() -> None:
    snapshot = loaded(grow(node("host", *(node(f"vf{at}", VF=1) for at in range(1200)))))
    (found,) = Search(snapshot, isolated(groups(1200, VF=1), limit=1))
    assert len(found.allocations) == 1200


def hosts() -> Iterator[Any]:
    """No two alike, so that no host tells what another one can do."""
    for number in range(HOSTS):
        devices = [node(f"h{number}-vf{at}", VF=1 + number + at) for at in range(4)]
        yield node(f"h{number}", *devices, VCPU=4096 + number, MEMORY_MB=4096 + number)


@pytest.fixture(scope="module")
def fleet() -> Snapshot:
    return loaded(grow(*hosts()))


HUNDRED = groups(100, VCPU=1)
DIFFERENT = tuple(
    Group(suffix=f"_{at}", resources={"VCPU": 1 + at, "MEMORY_MB": 1 + at % 7}) for at in range(90)
)
PAIRS = tuple(Affinity(frozenset([f"_{at}", f"_{at + 1}"])) for at in range(99))
REQUESTS = {
    "alike": Request(groups=HUNDRED, limit=10),
    "all of them": Request(groups=HUNDRED),
    "different": Request(groups=DIFFERENT, limit=10),
    "one subtree": Request(groups=HUNDRED, limit=10, affinities=(Affinity(suffixes(HUNDRED)),)),
    "many subtrees": Request(groups=HUNDRED, limit=10, affinities=PAIRS),
    "without resources": Request(groups=(Group(resources={"VCPU": 1}), *groups(99)), limit=10),
    "contending devices": Request(groups=groups(60, VF=1), limit=1000),
    "too few devices": isolated(groups(90, VF=1)),
    "all ways": isolated(groups(4, VF=1)),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_search_goes_in_small_steps(fleet: Snapshot, name: str) -> None:
    request = REQUESTS[name]
    search = Search(fleet.copy(), request)
    assert most_calls(search.candidates(request.limit)) < MOST_CALLS


@pytest.mark.parametrize("policy", ["scarcity", "spread"])
@pytest.mark.parametrize("name", ["alike", "different", "all ways"])
def test_a_ranking_goes_in_small_steps(fleet: Snapshot, name: str, policy: str) -> None:
    typical = Typical.of([(Request(groups=groups(3, VF=1)), 1), (Request(groups=HUNDRED), 1)])
    request = REQUESTS[name]
    search = RankedSearch(
        fleet.copy(), Request(groups=request.groups, limit=10, rank=((policy, 1),)), typical
    )
    assert most_calls(search.candidates(10)) < MOST_CALLS


@pytest.mark.parametrize("name", REQUESTS)
def test_a_fit_test_goes_in_small_steps(fleet: Snapshot, name: str) -> None:
    assert most_calls(how_many(fleet.copy(), REQUESTS[name])) < MOST_CALLS


def test_one_tree_of_a_thousand_devices_holds_nobody_up() -> None:
    devices = [node(f"vf{at}", VF=1 + at % 3) for at in range(1000)]
    snapshot = loaded(grow(node("host", *devices)))
    search = Search(snapshot, Request(groups=groups(100, VF=1), limit=10))
    assert most_calls(search.candidates(10)) < MOST_CALLS


def most_calls(steps: Iterator[Any], most_steps: int = 3000) -> int:
    """The calls of the longest step, of all there are or of the first ones."""
    counter, longest, more = Calls(), 0, True
    while more and most_steps:
        before, most_steps = counter.count, most_steps - 1
        sys.setprofile(counter)
        try:
            more = next(steps, END) is not END
        finally:
            sys.setprofile(None)
        longest = max(longest, counter.count - before)
    return longest


END = object()


class Calls:
    """Counts calls, as a profiler does."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        self.count += event in {"call", "c_call"}
