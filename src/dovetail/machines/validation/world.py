"""What validation is told besides the Machine, and the faults that it finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from dovetail.machines.documents import Machine, MachineType, PoolNode
from dovetail.podfit.objects import Node

MOST_HOLDERS_NAMED = 5


class World(msgspec.Struct, frozen=True, kw_only=True):
    """As far as it matters to one Machine."""

    machines: Sequence[Machine] = ()
    """All that were accepted, as they were then: its own name is passed over."""
    nodes: Mapping[str, Node] = {}
    """By name."""
    sold: Mapping[str, Sequence[str]] = {}
    """Holders of units, as `namespace/pod`, by type of this Machine."""
    accepted: Machine | None = None
    """This Machine when it was last accepted, with the labels that it had."""

    def others(self, machine: Machine) -> Iterator[Machine]:
        return (each for each in self.machines if each.metadata.name != machine.metadata.name)


class FieldFault(msgspec.Struct, frozen=True):
    path: str
    """Such as `spec.nodePool[2].machineType[0].name`."""
    message: str
    subject: str
    """The path with names in the place of positions: the same wherever the item is moved to."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class Field(msgspec.Struct, frozen=True):
    """A place in a Machine, by position and by name."""

    path: str
    subject: str

    def at(self, field: str) -> Field:
        return Field(f"{self.path}.{field}", f"{self.subject}.{field}")

    def item(self, field: str, position: int, name: str | None = None) -> Field:
        key = position if name is None else name
        return Field(f"{self.path}.{field}[{position}]", f"{self.subject}.{field}[{key}]")

    def fault(self, message: str) -> FieldFault:
        return FieldFault(self.path, message, self.subject)


SPEC = Field("spec", "spec")
METADATA = Field("metadata", "metadata")


def pool_fields(machine: Machine) -> Iterator[tuple[Field, PoolNode]]:
    for position, node in enumerate(machine.spec.node_pool):
        yield SPEC.item("nodePool", position, node.name), node


def type_fields(machine: Machine) -> Iterator[tuple[Field, MachineType]]:
    for position, machine_type in enumerate(machine.spec.machine_types):
        yield SPEC.item("machineTypes", position, machine_type.name), machine_type


def holder_words(holders: Sequence[str]) -> str:
    """Who holds units: the first few by name."""
    named = sorted(holders)[:MOST_HOLDERS_NAMED]
    more = len(holders) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")
