"""The node pool: nodes that exist, belong to one Machine, and serve types that there are."""

from __future__ import annotations

from collections.abc import Iterator

from dovetail.machines.documents import Machine, PoolNode
from dovetail.machines.names import MAINTENANCE, READY
from dovetail.machines.validation.world import Field, FieldFault, World, pool_fields


def node_faults(machine: Machine, world: World) -> Iterator[FieldFault]:
    owners = {
        node.name: other.metadata.name
        for other in world.others(machine)
        for node in other.spec.node_pool
    }
    positions: dict[str, int] = {}
    for position, (field, node) in enumerate(pool_fields(machine)):
        if node.name in positions:
            yield field.at("name").fault(
                f"node {node.name!r} is in the pool already: nodePool[{positions[node.name]}]"
            )
        elif node.name in owners:
            yield field.at("name").fault(
                f"node {node.name!r} belongs to Machine {owners[node.name]}"
            )
        elif node.name not in world.nodes:
            yield field.at("name").fault(f"there is no node {node.name!r}")
        if node.mode not in (READY, MAINTENANCE):
            yield field.at("mode").fault(f"{node.mode!r} is neither {READY} nor {MAINTENANCE}")
        positions.setdefault(node.name, position)


def served_type_faults(machine: Machine) -> Iterator[FieldFault]:
    for field, node in pool_fields(machine):
        if not node.types:
            yield field.at("machineType").fault("it has to name the type that the node serves")
        if len(node.types) > 1 and not machine.spec.several_types_per_node:
            yield field.at("machineType").fault(
                f"it names {len(node.types)} types: several are for Machines with"
                " severalTypesPerNode"
            )
        yield from _reference_faults(field, node, machine)


def _reference_faults(field: Field, node: PoolNode, machine: Machine) -> Iterator[FieldFault]:
    known = {each.name for each in machine.spec.machine_types}
    for position, name in enumerate(node.types):
        reference = field.item("machineType", position, name).at("name")
        if name not in known:
            yield reference.fault(f"there is no type {name!r} in machineTypes")
        elif name in node.types[:position]:
            yield reference.fault(f"type {name!r} is named twice")
