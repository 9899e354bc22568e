"""Small fleets to count: devices with a flag for each class, and ways to draw them at random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

from dovetail.core.device import Device
from dovetail.core.rows import Rows
from dovetail.core.selectors.selector import Expression, Operator
from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import DeviceHolding, DeviceRequest
from dovetail.devices.allocation.solver.search import MOST_STEPS
from dovetail.devices.classes.documents import DeviceClass, Member

LEAVES = ("a", "b", "c")
NODES = ("n1", "n2", "n3")
HOLDERS = ("p1", "p2", "p3", "p4")


def selecting(name: str, key: str = "", *, single: bool = False) -> DeviceClass:
    """The class of all devices that have the key (or the class's own name)."""
    selector = ((Expression(key or name, Operator.EXISTS),),)
    return DeviceClass(name, selector, single_device=single)


def nested(name: str, members: Mapping[str, int], *same: str) -> DeviceClass:
    parts = tuple(Member(each, count) for each, count in members.items())
    return DeviceClass(name, members=parts, same=same)


def device(
    name: str,
    flags: str = "",
    *,
    node: str = "n1",
    units: int = 1,
    healthy: bool = True,
    **more: str,
) -> Device:
    """Selected by the class of each letter in `flags`."""
    properties = {**dict.fromkeys(flags, "yes"), **more}
    return Device(
        node=node, name=name, kind="gpu", units=units, healthy=healthy, properties=properties
    )


def inventory(
    classes: Sequence[DeviceClass], *nodes: Sequence[Device], most_steps: int = MOST_STEPS
) -> DeviceInventory:
    """Of these classes, and of the devices of n1, n2, ..."""
    found = DeviceInventory(Rows(), most_steps=most_steps)
    for cls in classes:
        found.set_class(cls)
    for number, devices in enumerate(nodes, 1):
        found.set_node(f"n{number}", devices)
    return found


def units(holdings: Sequence[DeviceHolding] | None) -> dict[str, dict[str, int]] | None:
    """By class and device."""
    if holdings is None:
        return None
    found: dict[str, dict[str, int]] = {}
    for each in holdings:
        by_device = found.setdefault(each.class_name, {})
        by_device[each.device] = by_device.get(each.device, 0) + each.units
    return found


@st.composite
def devices(draw: st.DrawFn, most: int = 4, most_units: int = 3) -> tuple[Device, ...]:
    flags = st.sets(st.sampled_from(LEAVES)).map(lambda found: "".join(sorted(found)))
    count = draw(st.integers(0, most))
    found = []
    for number in range(count):
        values = {
            key: draw(st.sampled_from("01")) for key in ("numa", "slot") if draw(st.integers(0, 4))
        }
        found.append(
            device(
                f"d{number}",
                draw(flags),
                units=draw(st.integers(1, most_units)),
                healthy=draw(st.integers(0, 5)) > 0,
                **values,
            )
        )
    return tuple(found)


@st.composite
def class_sets(draw: st.DrawFn) -> tuple[DeviceClass, ...]:
    """Three classes that overlap at will, one made of them, and one made of that one."""
    leaves = [selecting(name, single=draw(st.integers(0, 3)) == 0) for name in LEAVES]
    keys = st.sampled_from([(), ("numa",), ("slot",), ("numa", "slot")])
    parts = st.dictionaries(st.sampled_from(LEAVES), st.integers(1, 2), min_size=1, max_size=2)
    inner = nested("inner", draw(parts), *draw(keys))
    outer = nested("outer", {"inner": draw(st.integers(1, 2)), draw(st.sampled_from(LEAVES)): 1})
    outer = nested("outer", {each.name: each.count for each in outer.members}, *draw(keys))
    return (*leaves, inner, outer)


def requests(names: Sequence[str], most: int = 3) -> st.SearchStrategy[list[DeviceRequest]]:
    one = st.builds(DeviceRequest, st.sampled_from(names), st.integers(1, 3))
    return st.lists(one, min_size=1, max_size=most)
