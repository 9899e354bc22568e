"""Device classes of the ledger: documents read lazily into definitions, and units counted.

The snapshot keeps the definitions for candidate queries; /dovetail/v1/classes and the device ledger
read and write the documents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from dovetail.core.rows import Rows
from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import ClassStatus, DeviceHolding
from dovetail.devices.classes.documents import DeviceClass, read, write
from dovetail.ledger.devices import Unit


def as_document(definition: DeviceClass) -> str:
    """The one way to write a definition, so that equal ones are equal texts."""
    return msgspec.json.encode(write(definition), order="sorted").decode()


def of_document(name: str, document: str) -> DeviceClass:
    return read(name, msgspec.json.decode(document, type=dict[str, object]))


class ClassDefinitions(Mapping[str, DeviceClass]):
    """By name; each is read when it is first asked for."""

    def __init__(self, documents: Mapping[str, str] | None = None) -> None:
        self._documents = documents or {}
        self._read: dict[str, DeviceClass] = {}

    def __getitem__(self, name: str) -> DeviceClass:
        found = self._read.get(name)
        if found is None:
            found = self._read[name] = of_document(name, self._documents[name])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._documents)

    def __len__(self) -> int:
        return len(self._documents)


def statuses(
    definitions: Mapping[str, DeviceClass], units: Iterable[Unit]
) -> dict[str, ClassStatus]:
    """How many units there are of each class, and how many are held."""
    inventory = DeviceInventory(Rows())
    for definition in definitions.values():
        inventory.set_class(definition)
    nodes: dict[str, list[Unit]] = defaultdict(list)
    for unit in units:
        nodes[unit.node].append(unit)
    for node, mine in nodes.items():
        devices = [unit.device for unit in mine]
        inventory.set_node(node, devices)
        held = [
            DeviceHolding(device.name, unit.used)
            for unit, device in zip(mine, devices, strict=True)
            if unit.used
        ]
        if held:
            inventory.hold(node, node, held)
    return {name: inventory.status(name) for name in definitions}
