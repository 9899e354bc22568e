"""What of a machine can be handed out as devices: its NICs and its hugepages.

Accelerators are left to their device plugins and drivers (`plugin_devices.py` has those of the
former), which know more of them than the kernel does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dovetail.core import quantity
from dovetail.core.device import Device, PluginOrigin
from dovetail.node.topology import Machine, Nic, NumaNode

NIC = "nic"
HUGEPAGES = "huge-pages"


PAGES = "hugepages-"


def devices_of(node: str, machine: Machine, delivered: Collection[str] = ()) -> tuple[Device, ...]:
    """`delivered`: what the agent brings into containers by a plugin, as `nic`, `hugepages-2Mi`."""
    nics = (_nic(node, each, is_delivered=NIC in delivered) for each in machine.nics)
    pages = (found for each in machine.nodes for found in _hugepages(node, each, delivered))
    return (*nics, *pages)


def page_resources(machine: Machine) -> frozenset[str]:
    """Of the sizes of hugepages that the machine has."""
    sizes = {size for each in machine.nodes for size in each.hugepages}
    return frozenset(PAGES + _written(size) for size in sizes)


def _nic(node: str, nic: Nic, *, is_delivered: bool) -> Device:
    told = {
        "speed": f"{nic.speed}Mbps" if nic.speed is not None else None,
        "numa": str(nic.numa) if nic.numa is not None else None,
        "mac": nic.mac or None,
    }
    return Device(
        node=node,
        name=nic.name,
        kind=NIC,
        # The kernel tells a speed where there is a link.
        healthy=nic.speed is not None,
        properties={key: value for key, value in told.items() if value is not None},
        origin=PluginOrigin(NIC, nic.name) if is_delivered else None,
    )


def _hugepages(node: str, numa: NumaNode, delivered: Collection[str]) -> Iterator[Device]:
    for size, pages in numa.hugepages.items():
        if pages.total:
            written = _written(size)
            resource = PAGES + written
            yield Device(
                node=node,
                name=f"{resource}-numa{numa.id}",
                kind=HUGEPAGES,
                units=pages.total,
                properties={"size": written, "numa": str(numa.id)},
                origin=PluginOrigin(resource, f"numa{numa.id}") if resource in delivered else None,
            )


def _written(size: int) -> str:
    return quantity.format(quantity.parse(str(size)), binary=True)
