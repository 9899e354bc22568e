"""In which order kinds are placed, and which of them take turns."""

from __future__ import annotations

from dovetail.podfit.packing.relations import ApartFrom, NearTo, Relations, SpreadAmong
from dovetail.podfit.packing.stages import stages_of
from dovetail.podfit.terms import TopologySpread

ZONE = TopologySpread(1, "zone", ())


def stages(*relations: ApartFrom | NearTo | SpreadAmong) -> list[tuple[int, ...]]:
    return stages_of(
        Relations(
            tuple(each for each in relations if isinstance(each, ApartFrom)),
            tuple(each for each in relations if isinstance(each, NearTo)),
            tuple(each for each in relations if isinstance(each, SpreadAmong)),
        )
    )


def test_pods_come_after_those_that_they_want_to_be_near() -> None:
    assert stages(NearTo(0, (1,)), NearTo(1, (2,))) == [(2,), (1,), (0,)]


def test_kinds_that_only_keep_apart_have_stages_of_their_own() -> None:
    assert stages(ApartFrom("zone", 0, 1), ApartFrom("zone", 2, 2)) == [(0,), (1,), (2,)]


def test_a_kind_that_is_spread_takes_turns_with_those_that_count() -> None:
    assert stages(SpreadAmong(0, ZONE, (0, 2)), ApartFrom("zone", 1, 1)) == [(1,), (0, 2)]


def test_a_kind_that_may_be_the_first_of_its_group_takes_turns_with_the_group() -> None:
    assert stages(NearTo(1, (0, 1))) == [(0, 1)]
    assert stages(NearTo(1, (1,)), NearTo(0, (1,))) == [(1,), (0,)]


def test_kinds_that_want_each_other_take_turns() -> None:
    assert stages(NearTo(0, (1,)), NearTo(1, (2,)), NearTo(2, (0,)), NearTo(3, (2,))) == [
        (0, 1, 2),
        (3,),
    ]
