"""Inventory: how much of a resource class a provider has, and what may be taken of it."""

from __future__ import annotations

import msgspec

MAX_INT = 2**31 - 1
"""The largest total and unit of the Placement API."""

MAX_CAPACITY = 2**62
"""Where capacities stop growing, so that sums of them still fit 64 bits."""


class Inventory(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = MAX_INT
    step_size: int = 1
    allocation_ratio: float = 1.0

    @property
    def capacity(self) -> int:
        return capacity(self.total, self.reserved, self.allocation_ratio)

    def allows(self, amount: int) -> bool:
        """Whether one allocation may be of this size at all, however much is free."""
        return is_allowed(amount, self.min_unit, self.max_unit, self.step_size)


class Supply(msgspec.Struct, frozen=True):
    """What a provider has of a resource class at the moment; nothing, unless said."""

    free: int = 0
    capacity: int = 0
    min_unit: int = 1
    max_unit: int = 0
    step_size: int = 1

    def allows(self, amount: int) -> bool:
        """Whether one allocation may be of this size, however much is free."""
        return is_allowed(amount, self.min_unit, self.max_unit, self.step_size)


def is_allowed(amount: int, min_unit: int, max_unit: int, step_size: int) -> bool:
    return min_unit <= amount <= max_unit and amount % step_size == 0


def capacity(total: int, reserved: int, allocation_ratio: float) -> int:
    """What can be handed out: whole units, so comparing with the product itself says the same."""
    product = (total - reserved) * allocation_ratio
    return int(min(max(product, -MAX_CAPACITY), MAX_CAPACITY))
