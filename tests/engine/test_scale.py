"""Requests whose possibilities nobody can go through one by one.

Nothing is timed: an engine that tries every combination does not come back from these, so that it
is enough to count what it found.
"""

from __future__ import annotations

from itertools import islice
from math import perm
from typing import Any

import pytest

from dovetail.core.request import Affinity, Group, Request
from dovetail.engine import Snapshot, search
from tests.engine.answers import ask, loaded
from tests.engine.forest import Node, grow, node

MANY = 200
EVEN = 0b10101010


def host(number: int, halves: int, devices: int = 8, units: int = 1) -> Node:
    """A host of two halves; a bit for each device says on which of them it is."""
    fpgas = [node(f"host{number}-fpga{n}", FPGA=units) for n in range(devices)]
    return node(
        f"host{number}",
        *(
            node(
                f"host{number}-numa{half}",
                *(fpga for n, fpga in enumerate(fpgas) if halves >> n & 1 == half),
                traits=["HW_NUMA_ROOT"],
            )
            for half in range(2)
        ),
    )


def fleet(hosts: int, devices: int = 8, units: int = 1) -> Snapshot:
    """Hosts of which no two are laid out alike, up to 256 of them."""
    return loaded(grow(*(host(n, n, devices, units) for n in range(hosts))))


def devices(count: int, amount: int = 1) -> tuple[Group, ...]:
    return tuple(Group(suffix=f"_{number}", resources={"FPGA": amount}) for number in range(count))


def isolating(groups: tuple[Group, ...], **wide: Any) -> Request:
    return Request(groups=groups, isolated=frozenset(group.suffix for group in groups), **wide)


def test_eight_groups_on_eight_devices_with_a_limit() -> None:
    found = ask(fleet(MANY), isolating(devices(8), limit=1000))
    assert len(found) == len(set(found)) == 1000
    assert all(len(candidate.allocations) == 8 for candidate in found)


def test_all_ways_to_place_seven_groups_on_seven_devices() -> None:
    found = ask(fleet(1, 7), isolating(devices(7)))
    assert len(found) == len(set(found)) == perm(7)


def test_every_host_gives_all_its_ways() -> None:
    assert len(ask(fleet(5), isolating(devices(4)))) == 5 * perm(8, 4)


def test_the_first_candidates_come_before_the_last_are_known() -> None:
    """Eight groups that may share devices: eight to the eighth ways a host."""
    found = search(fleet(MANY, units=8), Request(groups=devices(8)))
    assert len(list(islice(found, 100))) == 100


@pytest.mark.parametrize("isolated", [True, False])
def test_nine_groups_do_not_fit_on_eight_devices(isolated: bool) -> None:
    groups = devices(9)
    request = isolating(groups) if isolated else Request(groups=groups)
    assert ask(fleet(MANY), request) == []


def test_nine_isolated_groups_do_not_fit_on_eight_roomy_devices() -> None:
    assert ask(fleet(MANY, units=100), isolating(devices(9))) == []


def test_nine_groups_do_not_fit_where_each_device_has_room_for_one() -> None:
    """Twenty-four units for eighteen, but three cannot be halved."""
    assert ask(fleet(MANY, units=3), Request(groups=devices(9, amount=2))) == []


def test_a_ninth_group_does_not_fit_beside_eight_isolated_ones() -> None:
    ninth = Group(suffix="_NINTH", resources={"FPGA": 1})
    eight = isolating(devices(8))
    request = Request(groups=(*eight.groups, ninth), isolated=eight.isolated)
    assert ask(fleet(MANY, units=100), request) == []


def test_nine_groups_fit_where_a_ninth_device_is() -> None:
    hosts = [host(number, number) for number in range(MANY)]
    snapshot = loaded(grow(*hosts, host(MANY, EVEN, devices=9)))
    found = ask(snapshot, isolating(devices(9), limit=10))
    assert len(found) == 10
    assert all(name.startswith(f"host{MANY}-") for one in found for name, _, _ in one.allocations)


def test_five_devices_are_not_on_one_half() -> None:
    snapshot = loaded(grow(*(host(number, EVEN) for number in range(3))))
    half = Group(suffix="_HALF", required=(frozenset(["HW_NUMA_ROOT"]),))

    def found_on_one_half(count: int) -> int:
        groups = (*devices(count), half)
        together = Affinity(together=frozenset(group.suffix for group in groups))
        return len(ask(snapshot, isolating(groups, affinities=(together,))))

    assert found_on_one_half(4) == 3 * 2 * perm(4)
    assert found_on_one_half(5) == 0


def test_a_few_groups_that_compete_for_too_few_devices() -> None:
    """Nine devices for nine groups, but three of the groups fit on two of the devices only."""
    hosts = [
        node(
            f"host{number}",
            *(node(f"host{number}-plain{n}", FPGA=1) for n in range(7)),
            *(node(f"host{number}-large{n}", FPGA=1, traits=["LARGE"]) for n in range(2)),
            *(node(f"host{number}-other{n}") for n in range(number)),
        )
        for number in range(20)
    ]
    picky = tuple(
        Group(suffix=f"_L{n}", resources={"FPGA": 1}, required=(frozenset(["LARGE"]),))
        for n in range(3)
    )
    assert ask(loaded(grow(*hosts)), isolating((*devices(6), *picky))) == []
