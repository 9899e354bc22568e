"""How many units there are of each resource class, and how many are held."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from dovetail.core.rows import Rows
from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import ClassStatus, DeviceHolding
from dovetail.devices.classes.documents import DeviceClass
from dovetail.ledger.devices import Unit


def statuses(
    definitions: Mapping[str, DeviceClass], units: Iterable[Unit]
) -> dict[str, ClassStatus]:
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
