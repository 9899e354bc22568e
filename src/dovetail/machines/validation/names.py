"""Names: groups and types, alone and joined, since labels and names of objects are made of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dovetail.machines.documents import Machine
from dovetail.machines.names import (
    LONGEST_STATEFUL_SET,
    MACHINE_GROUP,
    RESERVED_TYPES,
    pool_name,
    stock_name,
)
from dovetail.machines.validation.world import METADATA, FieldFault, World, type_fields

DNS_1035 = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
GROUP = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
"""What may follow a type and a hyphen in a DNS-1035 label."""
LONGEST_NAME = 253
"""Of an object."""


def group_faults(machine: Machine, world: World) -> Iterator[FieldFault]:
    field = METADATA.at(f"labels[{MACHINE_GROUP}]")
    group = machine.group
    if not group:
        yield field.fault("the label is missing: it names the machine group")
    elif not GROUP.fullmatch(group):
        yield field.fault(
            f"{group!r} cannot be a part of a Service's name: it takes lower-case letters,"
            " digits and hyphens, and begins and ends without a hyphen"
        )
    for other in world.others(machine):
        if group and other.group == group:
            yield field.fault(f"Machine {other.metadata.name} has the group {group!r} already")
    pool = pool_name(machine.metadata.name)
    if len(pool) > LONGEST_NAME:
        yield METADATA.at("name").fault(
            f"the name of its node pool would have {len(pool)} characters: {LONGEST_NAME} at most"
        )


def type_name_faults(machine: Machine) -> Iterator[FieldFault]:
    positions: dict[str, int] = {}
    for position, (field, machine_type) in enumerate(type_fields(machine)):
        name = machine_type.name
        if name in positions:
            yield field.at("name").fault(
                f"there is a type {name!r} already: machineTypes[{positions[name]}]"
            )
        elif not DNS_1035.fullmatch(name):
            yield field.at("name").fault(
                f"{name!r} cannot begin a Service's name: it takes lower-case letters, digits and"
                " hyphens, begins with a letter and ends without a hyphen"
            )
        elif name in RESERVED_TYPES:
            yield field.at("name").fault(f"{name!r} is reserved: a label of its own is called so")
        positions.setdefault(name, position)


def join_faults(machine: Machine, world: World) -> Iterator[FieldFault]:
    """Of the names `<type>-<group>` of its Services and StatefulSets."""
    if not machine.group:
        return
    taken = {
        stock_name(each.name, other.group): (other.metadata.name, each.name)
        for other in world.others(machine)
        if other.group != machine.group
        for each in other.spec.machine_types
    }
    for field, machine_type in type_fields(machine):
        joined = stock_name(machine_type.name, machine.group)
        if len(joined) > LONGEST_STATEFUL_SET:
            yield field.at("name").fault(
                f"with its group it makes the name {joined!r} of {len(joined)} characters:"
                f" {LONGEST_STATEFUL_SET} at most"
            )
        if joined in taken:
            other, theirs = taken[joined]
            yield field.at("name").fault(
                f"with its group it makes the name {joined!r},"
                f" which type {theirs!r} of Machine {other} has already"
            )
