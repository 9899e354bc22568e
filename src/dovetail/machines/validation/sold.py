"""What is sold: shapes stay as they are, and types and groups stay at all, while units are held."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dovetail.core.quantity import BadQuantity
from dovetail.machines.documents import Machine, MachineSpec
from dovetail.machines.names import MACHINE_GROUP
from dovetail.machines.shapes import amounts_of, line_of, ratio_of
from dovetail.machines.validation.world import (
    METADATA,
    SPEC,
    FieldFault,
    World,
    holder_words,
    type_fields,
)

Shape = tuple[dict[str, int], tuple[tuple[str, str], ...], tuple[tuple[str, Fraction], ...]]


def sold_faults(machine: Machine, world: World) -> Iterator[FieldFault]:
    """Against what was accepted last. A smaller stock is legal: what is sold stays sold."""
    before = world.accepted
    sold = {name: holders for name, holders in world.sold.items() if holders}
    if before is None or not sold:
        return
    if machine.group != before.group:
        holders = [each for those in sold.values() for each in those]
        yield METADATA.at(f"labels[{MACHINE_GROUP}]").fault(
            f"the group cannot change from {before.group!r} while units are sold:"
            f" {holder_words(holders)}"
        )
    fields = {each.name: field for field, each in type_fields(machine)}
    for each in before.spec.machine_types:
        holders = list(sold.get(each.name, ()))
        if not holders:
            continue
        if each.name not in fields:
            yield SPEC.at("machineTypes").fault(
                f"type {each.name!r} cannot go while units are sold: {holder_words(holders)}"
            )
        elif _has_changed(machine.spec, before.spec, each.name):
            yield (
                fields[each.name]
                .at("spec")
                .fault(f"the shape cannot change while units are sold: {holder_words(holders)}")
            )


def _has_changed(spec: MachineSpec, before: MachineSpec, name: str) -> bool:
    """What cannot be read has not changed: it is a fault already."""
    try:
        return _shape(spec, name) != _shape(before, name)
    except (BadQuantity, ValueError):
        return False


def _shape(spec: MachineSpec, name: str) -> Shape:
    """What a unit is made of, however it is written, and which shares of whom it takes."""
    line = line_of(spec, name)
    gpu = line[0].spec.gpu
    shares = tuple((each.name, ratio_of(each)) for each in line)
    return amounts_of(line[0].spec), () if gpu is None else gpu.selectors, shares
