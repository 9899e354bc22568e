"""Claims with all they touch, locked and read: what `ledger/claims` checks and then writes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dovetail.core.claim import Claim
from dovetail.core.errors import CapacityExceeded, NoInventory, UnitsViolated
from dovetail.core.inventory import Inventory

Place = tuple[int, int]
"""provider id, class id"""


class Consumer(msgspec.Struct):
    id: int
    generation: int
    old: dict[Place, int]


class LockedInventory(msgspec.Struct):
    """One inventory that a claim touches, before and after."""

    inventory: Inventory | None
    used: int
    delta: int = 0


class ClaimTarget(msgspec.Struct, frozen=True):
    id: int
    uuid: str
    root_id: int
    name: str


class PreparedClaims(msgspec.Struct):
    """Claims with all they touch, locked."""

    wanted: list[tuple[Claim, dict[Place, int]]]
    consumers: dict[str, Consumer | None]
    targets: dict[int | str, ClaimTarget]
    locked: dict[Place, LockedInventory]
    names: dict[int, str]
    """Of resource classes, by id."""

    def check(self) -> None:
        """Refuse what does not fit; what leaves an overfull inventory no fuller is let through."""
        for place, amount in self.amounts():
            entry, inventory = self.locked[place], self.inventory_at(place)
            if not inventory.allows(amount):
                raise UnitsViolated(*self.name_at(place))
            if entry.used + entry.delta > inventory.capacity and entry.delta > 0:
                raise CapacityExceeded(*self.name_at(place))

    def check_inventories(self) -> None:
        for place, _ in self.amounts():
            self.inventory_at(place)

    def amounts(self) -> Iterator[tuple[Place, int]]:
        for _, amounts in self.wanted:
            yield from amounts.items()

    def inventory_at(self, place: Place) -> Inventory:
        found = self.locked[place].inventory
        if found is None:
            raise NoInventory(*self.name_at(place))
        return found

    def name_at(self, place: Place) -> tuple[str, str]:
        """The class, and the provider's uuid."""
        return self.names[place[1]], self.targets[place[0]].uuid
