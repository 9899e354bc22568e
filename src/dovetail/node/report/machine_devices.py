"""What of a machine can be handed out as devices: its NICs and its hugepages.

Accelerators are left to their drivers, which know more of them than the kernel does.
"""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.core import quantity
from dovetail.core.device import Device
from dovetail.node.topology import Machine, Nic, NumaNode

NIC = "nic"
HUGEPAGES = "huge-pages"


def devices_of(node: str, machine: Machine) -> tuple[Device, ...]:
    nics = (_nic(node, each) for each in machine.nics)
    pages = (found for each in machine.nodes for found in _hugepages(node, each))
    return (*nics, *pages)


def _nic(node: str, nic: Nic) -> Device:
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
    )


def _hugepages(node: str, numa: NumaNode) -> Iterator[Device]:
    for size, pages in numa.hugepages.items():
        if pages.total:
            written = quantity.format(quantity.parse(str(size)), binary=True)
            yield Device(
                node=node,
                name=f"hugepages-{written}-numa{numa.id}",
                kind=HUGEPAGES,
                units=pages.total,
                properties={"size": written, "numa": str(numa.id)},
            )
