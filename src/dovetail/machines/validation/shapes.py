"""Shapes: amounts that can be asked for, GPUs, shares of a parent and of a host."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from dovetail.core.quantity import BadQuantity, format, parse  # noqa: A004
from dovetail.machines.documents import GpuShape, Machine, MachineType
from dovetail.machines.names import GPU_TYPE
from dovetail.machines.shapes import amounts_of, line_of, ratio_of, types_served, written_requests
from dovetail.machines.validation.world import Field, FieldFault, World, type_fields
from dovetail.podfit.objects import Node
from dovetail.podfit.pod_sum import CPU, MEMORY, allocatable_of
from dovetail.podfit.selectors import LABEL_VALUE

FINEST = {CPU: (1000, "thousandths of a CPU"), MEMORY: (1, "bytes")}


def shape_faults(machine: Machine) -> Iterator[FieldFault]:
    for field, machine_type in type_fields(machine):
        spec = field.at("spec")
        for name, written in ((CPU, machine_type.spec.cpu), (MEMORY, machine_type.spec.memory)):
            yield from _quantity_faults(spec.at(name), name, str(written))
        if machine_type.spec.gpu is not None:
            yield from _gpu_faults(spec.at("gpu"), machine_type.spec.gpu)
        if machine_type.available < 0:
            yield field.at("available").fault("a stock cannot be less than nothing")


def _quantity_faults(field: Field, name: str, written: str) -> Iterator[FieldFault]:
    try:
        quantity = parse(written)
    except BadQuantity as error:
        yield field.fault(str(error))
        return
    parts, words = FINEST[name]
    if quantity <= 0:
        yield field.fault(f"{written} is not more than nothing")
    elif (quantity * parts).denominator != 1:
        yield field.fault(f"{written} is finer than Kubernetes counts: whole {words} only")


def _gpu_faults(field: Field, gpu: GpuShape) -> Iterator[FieldFault]:
    if not gpu.type:
        yield field.at("type").fault(f"it is missing: {GPU_TYPE}")
    elif gpu.type != GPU_TYPE:
        yield field.at("type").fault(f"{gpu.type!r} is not supported: {GPU_TYPE} is")
    if gpu.count < 0:
        yield field.at("num").fault(f"{gpu.num} is no number of GPUs: 0 or more are expected")
    if len(gpu.selectors) != 1:
        given = ", ".join(key for key, _ in gpu.selectors) or "none"
        yield field.fault(f"exactly one of family, product and machine is needed, not {given}")
    for key, value in gpu.selectors:
        if not LABEL_VALUE.fullmatch(value):
            yield field.at(key).fault(f"{value!r} cannot be the value of a label")


def dependence_faults(machine: Machine) -> Iterator[FieldFault]:
    types = {each.name: each for each in machine.spec.machine_types}
    for field, child in type_fields(machine):
        dependence = child.spec.dependence
        if dependence is None:
            continue
        place = field.at("spec").at("dependence")
        line = line_of(machine.spec, child.name)
        last = line[-1].spec.dependence
        if dependence.parent not in types:
            yield place.at("parent").fault(f"there is no type {dependence.parent!r}")
        elif last is not None and last.parent in [each.name for each in line]:
            names = " -> ".join([*(each.name for each in line), last.parent])
            yield place.at("parent").fault(f"types depend on each other in a circle: {names}")
        elif not 0 < dependence.available_ratio <= 1:
            yield place.at("availableRatio").fault(
                f"{dependence.available_ratio} is not in (0, 1]: it is a share of the parent"
            )
        else:
            yield from _share_faults(field, child, types[dependence.parent])


def _share_faults(field: Field, child: MachineType, parent: MachineType) -> Iterator[FieldFault]:
    """A unit of the child has to be its share of a unit of the parent, exactly."""
    ratio, spec = ratio_of(child), field.at("spec")
    try:
        ours, theirs = _exact_amounts(child), _exact_amounts(parent)
    except BadQuantity:
        return
    differing = [name for name in ours if ours[name] != theirs[name] * ratio]
    for name in differing:
        yield spec.at("gpu.num" if name == GPU_TYPE else name).fault(
            f"{_written(child, name)} is not the share {float(ratio):g} of {parent.name}'s"
            f" {_written(parent, name)}: that is {_shown(name, theirs[name] * ratio)}"
        )
    if GPU_TYPE not in differing and _gpu_kind(child) != _gpu_kind(parent):
        yield spec.at("gpu").fault(
            f"it is another kind than {parent.name}'s: {' '.join(_gpu_kind(parent)) or 'none'}"
        )
    most = int(max(parent.available, 0) / ratio)
    if child.available > most:
        yield field.at("available").fault(
            f"{parent.available} units of {parent.name} are {most} of these, not {child.available}"
        )


def _exact_amounts(machine_type: MachineType) -> dict[str, Fraction]:
    spec = machine_type.spec
    return {
        CPU: parse(str(spec.cpu)),
        MEMORY: parse(str(spec.memory)),
        GPU_TYPE: Fraction(spec.gpu.count if spec.gpu is not None else 0),
    }


def _written(machine_type: MachineType, name: str) -> str:
    return written_requests(machine_type.spec).get(name, "0")


def _gpu_kind(machine_type: MachineType) -> tuple[str, ...]:
    gpu = machine_type.spec.gpu
    return () if gpu is None else (gpu.type, *(part for each in gpu.selectors for part in each))


def _shown(name: str, amount: Fraction) -> str:
    return f"{float(amount):g}" if name == GPU_TYPE else format(amount, binary=name == MEMORY)


def host_limit_faults(machine: Machine, world: World) -> Iterator[FieldFault]:
    """A unit takes no more of any host that serves it than its limit says."""
    served = types_served(machine.spec)
    for field, machine_type in type_fields(machine):
        limit = machine_type.spec.host_limit
        place = field.at("spec").at("hostLimit")
        if limit is None:
            continue
        if not 0 < limit <= 1:
            yield place.fault(f"{limit} is not in (0, 1]: it is a share of a host")
            continue
        for pool_node in machine.spec.node_pool:
            node = world.nodes.get(pool_node.name)
            if node and machine_type.name in served.of(pool_node.types):
                yield from _beyond_limit(place, machine_type, Fraction(str(limit)), node)


def _beyond_limit(
    place: Field, machine_type: MachineType, limit: Fraction, node: Node
) -> Iterator[FieldFault]:
    try:
        amounts = amounts_of(machine_type.spec)
    except BadQuantity:
        return
    has = allocatable_of(node.status.allocatable)
    for name, amount in amounts.items():
        if amount > limit * has.get(name, 0):
            scale = 1000 if name == CPU else 1
            asked, total = Fraction(amount, scale), Fraction(has.get(name, 0), scale)
            yield place.fault(
                f"a unit takes {_shown(name, asked)} of the {_shown(name, total)} {name} that node"
                f" {node.metadata.name} has: more than {float(limit):g} of it"
            )
