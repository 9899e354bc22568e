"""The summary of requests seen."""

from __future__ import annotations

import msgspec
import pytest

from dovetail.core.request import Affinity, Group, NamedSelector, Request
from dovetail.core.selectors.selector import Expression, Operator
from dovetail.engine.rank import Typical
from dovetail.engine.rank.typical import MOST_KINDS, MOST_NEEDS
from dovetail.engine.request_key import request_key


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


def test_so_are_its_needs_and_who_has_too_many_leaves_room_for_others() -> None:
    """A request may have a hundred groups, and each of them is looked at in every tree."""
    wide = [
        Request(groups=tuple(Group(suffix=f"_{n}", resources={"VCPU": n + at}) for n in range(100)))
        for at in range(1, 100)
    ]
    typical = Typical.of([*((each, 2) for each in wide), *((asking(n), 1) for n in range(1, 50))])
    chosen = [request for request, _ in typical.requests]
    assert chosen == [*wide[: MOST_NEEDS // 100], *(asking(n) for n in range(1, 50))]
    assert [request for request, _ in typical.rare] == wide[MOST_NEEDS // 100 :]


def test_nothing_seen_is_nothing_typical() -> None:
    assert Typical.of([]).requests == ()


SELECTOR = ((Expression("memory", Operator.EXISTS),),)
ANOTHER = {
    "suffix": "_A",
    "resources": {"VCPU": 2},
    "required": (frozenset(["A"]),),
    "forbidden": frozenset(["A"]),
    "member_of": (frozenset(["A"]),),
    "not_member_of": frozenset(["A"]),
    "in_tree": "A",
    "selectors": (SELECTOR,),
    "classes": (NamedSelector("a", SELECTOR),),
}


@pytest.mark.parametrize("field", Group.__struct_fields__)
def test_groups_that_differ_in_anything_are_not_the_same(field: str) -> None:
    other = msgspec.structs.replace(Group(), **{field: ANOTHER[field]})
    assert request_key(Request(groups=(other,))) != request_key(Request(groups=(Group(),)))


WHATEVER = {"groups", "limit", "rank"}
OTHER_REQUEST = {
    "isolated": frozenset(["A"]),
    "affinities": (Affinity(frozenset(["A"])),),
    "root_required": (frozenset(["A"]),),
    "root_forbidden": frozenset(["A"]),
    "root_member_of": (frozenset(["A"]),),
    "root_not_member_of": frozenset(["A"]),
    "one_provider_per_tree": True,
}


@pytest.mark.parametrize("field", sorted(set(Request.__struct_fields__) - WHATEVER))
def test_requests_that_differ_in_more_than_limit_and_ranking_are_not_the_same(field: str) -> None:
    other = msgspec.structs.replace(asking(1), **{field: OTHER_REQUEST[field]})
    assert request_key(other) != request_key(asking(1))
