"""Capacity: whole units, whatever the ratio."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.inventory import MAX_CAPACITY, MAX_INT, Inventory


@pytest.mark.parametrize(
    ("inventory", "capacity"),
    [
        (Inventory(total=10), 10),
        (Inventory(total=10, reserved=3), 7),
        (Inventory(total=3, allocation_ratio=1.5), 4),
        (Inventory(total=1, allocation_ratio=0.5), 0),
        (Inventory(total=MAX_INT, allocation_ratio=3e38), MAX_CAPACITY),
        (Inventory(total=1, reserved=2, allocation_ratio=3e38), -MAX_CAPACITY),
    ],
)
def test_capacity(inventory: Inventory, capacity: int) -> None:
    assert inventory.capacity == capacity


@given(
    st.integers(1, MAX_INT),
    st.integers(0, MAX_INT),
    st.floats(0, 1000, allow_nan=False),
    st.integers(1, MAX_INT),
)
def test_whole_units_decide_like_the_product_itself(
    total: int, reserved: int, ratio: float, wanted: int
) -> None:
    inventory = Inventory(total=total, reserved=min(reserved, total), allocation_ratio=ratio)
    product = (inventory.total - inventory.reserved) * ratio
    assert (wanted <= inventory.capacity) == (wanted <= product)


@pytest.mark.parametrize(
    ("amount", "allowed"), [(1, False), (2, True), (3, False), (4, True), (6, True), (8, False)]
)
def test_units(amount: int, allowed: bool) -> None:
    assert Inventory(total=10, min_unit=2, max_unit=6, step_size=2).allows(amount) == allowed
