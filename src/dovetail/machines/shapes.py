"""Shapes: what one unit of a machine type asks of its node, and its share of its root type.

Planner, validation, injection and the objects of the stock all read a type by its `UnitShape`.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import msgspec

from dovetail.core.quantity import parse
from dovetail.machines.documents import MachineSpec, MachineType, ShapeSpec, derived
from dovetail.machines.names import GPU_TYPE
from dovetail.podfit.pod_sum import CPU, MEMORY, units


class UnitShape(msgspec.Struct, frozen=True, kw_only=True):
    """One unit of a type."""

    name: str
    amounts: dict[str, int]
    """Thousandths of a CPU, bytes, GPUs: no more than these three resources."""
    requests: dict[str, str]
    """The same as they are written: requests and limits of the sleeper."""
    gpu_label: tuple[str, str] | None
    """Key and value of the node label that the GPU demands."""
    root: str
    """The type at the top of its line of parents: itself, if it depends on none."""
    share: Fraction
    """Of a unit of the root."""
    line: tuple[str, ...]
    """Itself, its parent, and so on up to the root."""
    companions: tuple[str, ...] = ()
    """Types whose taints are on nodes that serve this one, too: a unit has to tolerate theirs."""

    @property
    def gpus(self) -> int:
        return self.amounts.get(GPU_TYPE, 0)


def amounts_of(spec: ShapeSpec) -> dict[str, int]:
    """Raises BadQuantity."""
    found = {CPU: units(CPU, parse(str(spec.cpu))), MEMORY: units(MEMORY, parse(str(spec.memory)))}
    if spec.gpu is not None and spec.gpu.count:
        found[spec.gpu.type] = spec.gpu.count
    return found


def written_requests(spec: ShapeSpec) -> dict[str, str]:
    found = {CPU: str(spec.cpu), MEMORY: str(spec.memory)}
    if spec.gpu is not None and spec.gpu.count:
        found[spec.gpu.type] = str(spec.gpu.count)
    return found


def ratio_of(machine_type: MachineType) -> Fraction:
    """As it was written, in decimals: 0.1 is a tenth."""
    dependence = machine_type.spec.dependence
    return Fraction(1) if dependence is None else Fraction(str(dependence.available_ratio))


def line_of(spec: MachineSpec, name: str) -> list[MachineType]:
    """The type, its parent, and so on up to the root; ends before a type that comes twice."""
    types = {each.name: each for each in spec.machine_types}
    line: list[MachineType] = []
    at = types.get(name)
    while at is not None and at not in line:
        line.append(at)
        at = types.get(at.spec.dependence.parent) if at.spec.dependence is not None else None
    return line


@derived
def shapes_of(spec: MachineSpec) -> Mapping[str, UnitShape]:
    """By type, for a specification that was accepted."""
    return {each.name: _shape(spec, each) for each in spec.machine_types}


def _shape(spec: MachineSpec, machine_type: MachineType) -> UnitShape:
    line = line_of(spec, machine_type.name)
    share = Fraction(1)
    for each in line:
        share *= ratio_of(each)
    gpu = machine_type.spec.gpu
    label = next(iter(gpu.selectors), None) if gpu is not None else None
    return UnitShape(
        name=machine_type.name,
        amounts=amounts_of(machine_type.spec),
        requests=written_requests(machine_type.spec),
        gpu_label=None if label is None else (f"{GPU_TYPE}.{label[0]}", label[1]),
        root=line[-1].name,
        share=share,
        line=tuple(each.name for each in line),
        companions=companions_of(spec, machine_type.name),
    )


def companions_of(spec: MachineSpec, name: str) -> tuple[str, ...]:
    """In the order of the specification."""
    kinds_of_nodes = {each.types for each in spec.node_pool if each.taint}
    served = [served_types(spec, types) for types in kinds_of_nodes]
    beside = {other for types in served if name in types for other in types} - {name}
    return tuple(each.name for each in spec.machine_types if each.name in beside)


def served_types(spec: MachineSpec, node_types: tuple[str, ...]) -> tuple[str, ...]:
    """The types of a node and all that depend on them: whose units its labels let in."""
    return tuple(
        each.name
        for each in spec.machine_types
        if any(one.name in node_types for one in line_of(spec, each.name))
    )


class ServedTypes:
    """As `served_types`, worked out once for all nodes that serve the same."""

    def __init__(self, spec: MachineSpec) -> None:
        self._spec = spec
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {}

    def of(self, node_types: tuple[str, ...]) -> tuple[str, ...]:
        found = self._known.get(node_types)
        if found is None:
            found = self._known[node_types] = served_types(self._spec, node_types)
        return found


@derived
def types_served(spec: MachineSpec) -> ServedTypes:
    return ServedTypes(spec)


@derived
def types_unserved(spec: MachineSpec) -> tuple[str, ...]:
    """Types that no node serves, nor any that they depend on: legal, but nobody can buy them."""
    named = {name for node in spec.node_pool for name in node.types}
    return tuple(
        each.name
        for each in spec.machine_types
        if not any(one.name in named for one in line_of(spec, each.name))
    )
