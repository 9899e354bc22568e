"""Pools are divided as they should be, and divided anew with as little movement as possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.roles import SHARED, CpuPool
from dovetail.node.plugins.cpu.pools import CpuMove, Division, divide, moves, stepped
from dovetail.node.topology import Machine, synthetic

SPEC = synthetic()
SMALL = synthetic(sockets=2, cores=2, threads=2)
"""0-3 and 4-7."""
NONE = CpuSet()


def divided(
    machine: Machine,
    pools: Mapping[str, CpuPool],
    sizes: Mapping[str, int],
    before: Division | None = None,
    *,
    held: CpuSet = NONE,
) -> dict[str, str]:
    found = divide(machine, pools, sizes, before or {}, allocatable=machine.online, held=held)
    return {name: str(cpus) for name, cpus in found.items()}


def sized(**sizes: int) -> dict[str, CpuPool]:
    return {name: CpuPool(size=size) for name, size in sizes.items()}


def parsed(division: Mapping[str, str]) -> Division:
    return {name: CpuSet.parse(text) for name, text in division.items()}


def test_the_specification_s_adjustment_and_back() -> None:
    pools = sized(online=76, offline=4)
    before = divided(SPEC, pools, {"online": 76, "offline": 4})
    assert before == {"online": "0-37,40-77", "offline": "38-39,78-79", SHARED: ""}
    after = divided(SPEC, pools, {"online": 28, "offline": 52}, parsed(before))
    assert after == {"online": "0-13,40-53", "offline": "14-39,54-79", SHARED: ""}
    assert divided(SPEC, pools, {"online": 76, "offline": 4}, parsed(after)) == before


def test_packed_pools_use_as_few_nodes_as_possible() -> None:
    pools = {"a": CpuPool(size=6, spread="packed"), "b": CpuPool(size=6)}
    assert divided(SPEC, pools, {"a": 6, "b": 6}) == {
        "a": "0-5",
        "b": "6-9,40-41",
        SHARED: "10-39,42-79",
    }


def test_listed_pools_have_what_is_listed_and_others_make_room() -> None:
    pools = {"fixed": CpuPool(cpus=CpuSet.parse("0-1")), "rest": CpuPool(size=4)}
    assert divided(SMALL, pools, {"rest": 4}, {"rest": CpuSet.parse("0-3")}) == {
        "fixed": "0-1",
        "rest": "2-5",
        SHARED: "6-7",
    }


def test_an_odd_size_splits_one_core_which_is_made_whole_again() -> None:
    pools = sized(a=3, b=2)
    before = divided(SMALL, pools, {"a": 3, "b": 2})
    assert before == {"a": "0-1,4", "b": "2-3", SHARED: "5-7"}
    assert divided(SMALL, pools, {"a": 4, "b": 2}, parsed(before))["a"] == "0-1,4-5"


def test_halves_of_one_s_own_cores_come_before_whole_ones() -> None:
    before = {"a": CpuSet.parse("4,6")}
    assert divided(SMALL, sized(a=4), {"a": 4}, before)["a"] == "4-7"


def test_what_is_held_moves_last() -> None:
    before = {"a": CpuSet.parse("0-3"), "b": CpuSet.parse("4-7")}
    pools = sized(a=4, b=4)
    after = divided(SMALL, pools, {"a": 2, "b": 6}, before, held=CpuSet.parse("2-3"))
    assert after["a"] == "2-3"


def test_a_pool_that_is_gone_leaves_its_cpus_to_all() -> None:
    before = {"a": CpuSet.parse("0-3"), "old": CpuSet.parse("4-7")}
    assert divided(SMALL, sized(a=4), {"a": 4}, before) == {"a": "0-3", SHARED: "4-7"}


def test_moves_tell_who_gives_what_to_whom() -> None:
    before, after = parsed({"a": "0-3", SHARED: "4-7"}), parsed({"a": "2-5", SHARED: "0-1,6-7"})
    assert moves(before, after) == [
        CpuMove("a", SHARED, CpuSet.parse("0-1")),
        CpuMove(SHARED, "a", CpuSet.parse("4-5")),
    ]


RAMPED = {"a": CpuPool(size=10, ramp=2), "b": CpuPool(size=10, ramp=4), "c": CpuPool(size=1)}


class TestRamp:
    @pytest.mark.parametrize(
        ("now", "wanted", "spare", "expected"),
        [
            ((10, 10, 1), (10, 10, 1), 0, (10, 10, 1)),
            ((10, 10, 1), (4, 10, 7), 0, (8, 10, 3)),
            ((10, 10, 1), (10, 2, 9), 0, (10, 6, 5)),
            ((10, 10, 1), (20, 20, 1), 3, (12, 11, 1)),
            ((10, 10, 1), (11, 10, 1), 9, (11, 10, 1)),
        ],
    )
    def test_no_pool_changes_faster_than_its_ramp_or_than_there_is_room(
        self, now: tuple[int, ...], wanted: tuple[int, ...], spare: int, expected: tuple[int, ...]
    ) -> None:
        found = stepped(
            RAMPED,
            dict(zip("abc", now, strict=True)),
            dict(zip("abc", wanted, strict=True)),
            spare,
        )
        assert tuple(found.values()) == expected


def assignments(cpus: list[int], sizes: Mapping[str, int]) -> Iterator[dict[str, set[int]]]:
    """Every way to divide the CPUs into pools of these sizes, the rest shared."""
    if not cpus:
        if not any(sizes.values()):
            yield {name: set() for name in (*sizes, SHARED)}
        return
    first, rest = cpus[0], cpus[1:]
    for name in (*sizes, SHARED):
        if name == SHARED and sum(sizes.values()) > len(rest):
            continue
        if name != SHARED and not sizes[name]:
            continue
        left = dict(sizes) if name == SHARED else {**sizes, name: sizes[name] - 1}
        for found in assignments(rest, left):
            yield {**found, name: found[name] | {first}}


def changed(before: Division, after: Mapping[str, AbstractSet[int]]) -> int:
    return sum(len(after[name] - before[name]) for name in before)


def some_sizes(data: st.DataObject, names: list[str], cpus: int, unit: int) -> dict[str, int]:
    found = {}
    for name in names:
        found[name] = data.draw(st.integers(0, cpus // unit)) * unit
        cpus -= found[name]
    return found


def some_pools(data: st.DataObject) -> dict[str, CpuPool]:
    return {name: CpuPool(size=1, spread=data.draw(SPREADS)) for name in data.draw(NAMES)}


SPREADS: st.SearchStrategy[Literal["even", "packed"]] = st.sampled_from(["even", "packed"])
NAMES = st.sampled_from([["a"], ["a", "b"], ["a", "b", "c"]])


@settings(deadline=None)
@given(st.data())
def test_least_movement_equals_brute_force_on_small_machines(data: st.DataObject) -> None:
    machine = data.draw(st.sampled_from([SMALL, synthetic(cores=3, threads=1)]))
    pools, cpus = some_pools(data), sorted(machine.online)
    before = divide(
        machine,
        pools,
        some_sizes(data, [*pools], len(cpus), 1),
        {},
        allocatable=machine.online,
        held=NONE,
    )
    sizes = some_sizes(data, [*pools], len(cpus), 1)
    after = divide(machine, pools, sizes, before, allocatable=machine.online, held=NONE)

    assert {name: len(after[name]) for name in pools} == sizes
    assert sorted(cpu for each in after.values() for cpu in each) == cpus
    least = min(changed(before, each) for each in assignments(cpus, sizes))
    assert changed(before, after) == least


@given(st.data())
def test_sizes_of_whole_cores_split_none(data: st.DataObject) -> None:
    machine = data.draw(st.sampled_from([SMALL, SPEC, synthetic(adjacent_siblings=False)]))
    pools = some_pools(data)
    division: Division = {SHARED: machine.online}
    for _ in range(3):
        sizes = some_sizes(data, [*pools], len(machine.cpus), 2)
        division = divide(machine, pools, sizes, division, allocatable=machine.online, held=NONE)
        for cpus in division.values():
            assert machine.whole_cores(cpus) == cpus
