"""Errors of the domain, as one tree of exceptions; packages derive their own from it.

    DovetailError
      NotFound            ProviderNotFound, ClassNotFound, TraitNotFound, InventoryNotFound
      AlreadyExists       ProviderExists, ClassExists
      InUse               ProviderInUse, ProviderIsParent, InventoryInUse, TraitInUse, ClassInUse
      StaleGeneration     somebody else changed the provider or the consumer first
      Refused             NoInventory, UnitsViolated, CapacityExceeded: a claim that does not fit
      Malformed           BadParent, BadCapacity, StandardName, BadDevices, BadFleet

Nothing here knows of HTTP or SQL: the doors map these to their own status codes. The texts are what
clients of OpenStack Placement already match on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class DovetailError(Exception):
    """Anything the domain refuses to do."""


class NotFound(DovetailError):
    """Something that was named does not exist."""


class ProviderNotFound(NotFound):
    def __init__(self, uuid: str) -> None:
        self.uuid = uuid
        super().__init__(f"No resource provider with uuid {uuid} found")


class ClassNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"No such resource class {name}.")


class TraitNotFound(NotFound):
    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(f"No such trait(s): {', '.join(sorted(names))}.")


class InventoryNotFound(NotFound):
    def __init__(self, class_name: str) -> None:
        super().__init__(f"No inventory of class {class_name} found.")


class AlreadyExists(DovetailError):
    """A name or an id is taken."""


class ProviderExists(AlreadyExists):
    def __init__(self, taken: Mapping[str, str]) -> None:
        self.taken = taken
        what = ", ".join(f"{field}: {value}" for field, value in taken.items())
        super().__init__(f"Conflicting resource provider {what} already exists.")


class ClassExists(AlreadyExists):
    def __init__(self, name: str) -> None:
        super().__init__(f"Resource class {name} already exists.")


class InUse(DovetailError):
    """Something cannot go because something else rests on it."""


class ProviderInUse(InUse):
    def __init__(self) -> None:
        super().__init__("Resource provider has allocations.")


class ProviderIsParent(InUse):
    def __init__(self) -> None:
        super().__init__("It has child resource providers.")


class InventoryInUse(InUse):
    def __init__(self, classes: Iterable[str], provider: str) -> None:
        names = ", ".join(classes)
        super().__init__(f"Inventory for '{names}' on resource provider '{provider}' in use.")


class TraitInUse(InUse):
    def __init__(self, name: str) -> None:
        super().__init__(f"The trait {name} is in use by a resource provider.")


class ClassInUse(InUse):
    def __init__(self, name: str) -> None:
        super().__init__(f"Cannot delete resource class {name}. Class is in use in inventory.")


class StaleGeneration(DovetailError):
    """The generation given is not the current one: read again, then retry."""


class Refused(DovetailError):
    """A claim that the inventories do not allow."""

    reason = "invalid."

    def __init__(self, class_name: str, provider: str) -> None:
        self.class_name, self.provider = class_name, provider
        super().__init__(self.sentence(class_name, provider))

    def sentence(self, class_name: str, provider: str) -> str:
        return (
            f"Unable to create allocation for '{class_name}' on resource provider "
            f"'{provider}'. The requested amount would {self.reason}"
        )


class NoInventory(Refused):
    def sentence(self, class_name: str, provider: str) -> str:
        return f"Inventory for '{class_name}' on resource provider '{provider}' invalid."


class UnitsViolated(Refused):
    reason = "violate inventory constraints."


class CapacityExceeded(Refused):
    reason = "exceed the capacity."


class Malformed(DovetailError):
    """Input that no state of the ledger could make right."""


class BadParent(Malformed):
    """A parent that does not exist, is the provider itself, or would close a loop."""


class BadCapacity(Malformed):
    """An inventory that reserves more than there is."""

    def __init__(self, class_name: str, provider: str, *, equal_is_bad: bool) -> None:
        limit = "greater than or equal to total" if equal_is_bad else "greater than total"
        super().__init__(
            f"Invalid inventory for '{class_name}' on resource provider '{provider}'. "
            f"The reserved value is {limit}."
        )


class StandardName(Malformed):
    """Standard traits and resource classes are not for changing."""


class BadDevices(Malformed):
    """A list of devices that no node can have."""


class BadFleet(Malformed):
    """A fleet document that cannot be loaded, with the line and the place in it."""

    def __init__(self, line: int, where: str, what: str) -> None:
        self.line = line
        place = f"line {line}, {where}" if where else f"line {line}"
        super().__init__(f"{place}: {what}")
