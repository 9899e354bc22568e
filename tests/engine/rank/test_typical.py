"""The summary of requests seen."""

from __future__ import annotations

from dovetail.core.request import Group, Request
from dovetail.engine.rank import Typical
from dovetail.engine.rank.typical import MOST_KINDS


def asking(vcpu: int, limit: int | None = None) -> Request:
    return Request(groups=(Group(resources={"VCPU": vcpu}),), limit=limit)


def summary(*counted: tuple[Request, int]) -> list[tuple[int, int]]:
    found = Typical.of(counted).requests
    return [(request.groups[0].resources["VCPU"], count) for request, count in found]


def test_most_frequent_first_and_the_earlier_of_equals() -> None:
    assert summary((asking(1), 2), (asking(2), 5), (asking(3), 2)) == [(2, 5), (1, 2), (3, 2)]


def test_requests_for_the_same_are_counted_together_whatever_their_limit() -> None:
    assert summary((asking(1), 2), (asking(1, limit=10), 3)) == [(1, 5)]


def test_it_ends_where_ninety_five_in_a_hundred_are_covered() -> None:
    assert summary((asking(1), 90), (asking(2), 5), (asking(3), 5)) == [(1, 90), (2, 5)]
    assert summary((asking(1), 90), (asking(2), 4), (asking(3), 3), (asking(4), 3)) == [
        (1, 90),
        (2, 4),
        (3, 3),
    ]


def test_it_is_bounded() -> None:
    assert len(summary(*((asking(n), 1) for n in range(1, 2 * MOST_KINDS)))) == MOST_KINDS


def test_nothing_seen_is_nothing_typical() -> None:
    assert Typical.of([]).requests == ()
