"""The stock: whether all units fit on the pool's nodes at once, proved by exact packing.

On the nodes as they would be if nothing ran there and all were ready: what is accepted must not
depend on who happens to run, and a node may always be put into maintenance. What is short of that
is told by the condition `StockShort`.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from dovetail.core.rows import Rows
from dovetail.machines.documents import Machine, MachineSpec
from dovetail.machines.marks import marked, marks_of
from dovetail.machines.names import READY
from dovetail.machines.objects import sleeper_request
from dovetail.machines.shapes import UnitShape, served_types, shapes_of, types_unserved
from dovetail.machines.snapshot import StockSettings
from dovetail.machines.validation.world import FieldFault, World, type_fields
from dovetail.podfit.objects import NodeSpec
from dovetail.podfit.packing import PodsToPack, Unpackable, pack
from dovetail.podfit.table import NodeTable

Demand = dict[str, tuple[dict[str, int], tuple[str, str] | None, int]]
"""By type: what a unit takes, the GPU label it demands, and how many units there are."""


def stock_faults(machine: Machine, world: World) -> Iterator[FieldFault]:
    """Of a Machine that has no other faults. What packing cannot decide in time is accepted."""
    if world.accepted is not None and _asks_no_more(machine.spec, world.accepted.spec, world):
        return
    kinds = _demand(machine.spec)
    shapes = shapes_of(machine.spec)
    fields = {each.name: field for field, each in type_fields(machine)}
    unlabelled = [name for name in kinds if not _has_gpu_label(shapes[name], machine.spec, world)]
    for name in unlabelled:
        key, value = shapes[name].gpu_label or ("", "")
        yield (
            fields[name]
            .at("spec")
            .at("gpu")
            .fault(f"no node that serves {name} has the label {key}={value}")
        )
    if unlabelled:
        return
    found = pack(
        _idle_pool(machine, world),
        [
            PodsToPack(sleeper_request(shapes[name], machine.group, StockSettings()), count)
            for name, (_, _, count) in kinds.items()
        ],
    )
    if isinstance(found, Unpackable):
        yield fields[list(kinds)[found.kind]].at("available").fault(found.words)


def _demand(spec: MachineSpec) -> Demand:
    """Of the types whose units have to find room: a child is part of a parent that is served."""
    unserved, shapes = types_unserved(spec), shapes_of(spec)
    found: Demand = {}
    for each in spec.machine_types:
        parent = each.spec.dependence.parent if each.spec.dependence is not None else None
        is_part = parent is not None and parent not in unserved
        if each.name not in unserved and not is_part and each.available:
            shape = shapes[each.name]
            found[each.name] = (shape.amounts, shape.gpu_label, each.available)
    return found


def _has_gpu_label(shape: UnitShape, spec: MachineSpec, world: World) -> bool:
    """Whether some node that serves the type carries what its GPU demands, if it has one."""
    if shape.gpu_label is None:
        return True
    key, value = shape.gpu_label
    return any(
        world.nodes[node.name].metadata.labels.get(key) == value
        for node in spec.node_pool
        if node.name in world.nodes and shape.name in served_types(spec, node.types)
    )


def _asks_no_more(spec: MachineSpec, before: MachineSpec, world: World) -> bool:
    """Whether the change takes no node away and adds no unit: it was proved, or is short, before.

    Nodes that are gone have not been of use to either.
    """
    ours, theirs = _demand(spec), _demand(before)
    if any(
        name not in theirs or theirs[name][:2] != each[:2] or theirs[name][2] < each[2]
        for name, each in ours.items()
    ):
        return False
    pool, old_pool = (
        {each.name: set(each.types) for each in one.node_pool if each.name in world.nodes}
        for one in (spec, before)
    )
    return all(types <= pool.get(name, set()) for name, types in old_pool.items())


def _idle_pool(machine: Machine, world: World) -> NodeTable:
    """The pool's nodes, marked and without anything that keeps pods away."""
    table = NodeTable(Rows())
    for entry in machine.spec.node_pool:
        node = world.nodes.get(entry.name)
        if node is not None:
            found = marked(node, marks_of(machine.spec, machine.group, entry, READY))
            table.set_node(replace(found, spec=NodeSpec()))
    return table
