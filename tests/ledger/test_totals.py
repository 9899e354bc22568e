"""Totals of the fleet: what is free, and how much of it one claim could get."""

from __future__ import annotations

import pytest

from dovetail.core.errors import NotFound
from dovetail.core.inventory import Inventory
from dovetail.ledger import Ledger, inventories, totals
from dovetail.ledger.totals import ClassTotal, largest_claim
from tests.ledger.world import claim, make


def test_capacity_use_and_the_largest_claim(ledger: Ledger) -> None:
    one = make(ledger, "one", VCPU=Inventory(total=10, reserved=2, allocation_ratio=2.0))
    make(ledger, "two", VCPU=8, DISK_GB=100)
    child = make(ledger, "child", one, VCPU=8)
    claim(ledger, (one, {"VCPU": 11}), (child, {"VCPU": 8}))
    found = ledger.read(totals.by_class).result()
    assert found["VCPU"] == ClassTotal(providers=3, capacity=32, used=19, free=13, largest=8)
    assert found["DISK_GB"] == ClassTotal(providers=1, capacity=100, used=0, free=100, largest=100)
    tree = ledger.read(lambda tx: totals.by_class(tx, "child")).result()
    assert tree == {"VCPU": ClassTotal(providers=2, capacity=24, used=19, free=5, largest=5)}
    with pytest.raises(NotFound):
        ledger.read(lambda tx: totals.by_class(tx, "nowhere")).result()


def test_what_is_overfull_takes_nothing_from_the_others(ledger: Ledger) -> None:
    full = make(ledger, "full", VCPU=8)
    make(ledger, "empty", VCPU=8)
    claim(ledger, (full, {"VCPU": 6}))
    less = {"VCPU": Inventory(total=4)}
    ledger.write(lambda tx: inventories.assign(tx, full, less)).result()
    found = ledger.read(totals.by_class).result()
    assert found["VCPU"] == ClassTotal(providers=2, capacity=12, used=6, free=8, largest=8)


@pytest.mark.parametrize(
    ("free", "expected"), [(100, 48), (47, 32), (16, 16), (15, 0), (31, 16), (0, 0)]
)
def test_units_bound_a_single_claim(free: int, expected: int) -> None:
    inventory = Inventory(total=100, min_unit=10, max_unit=50, step_size=16)
    assert largest_claim(inventory, free) == expected
