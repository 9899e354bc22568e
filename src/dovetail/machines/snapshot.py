"""Snapshot: all that the plan of one Machine depends on, put together by whoever observes it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from dovetail.machines.documents import Machine, MachineNodePool, MachineShape, MachineSpec
from dovetail.podfit.objects import (
    Namespace,
    Node,
    NodeSelectorTerm,
    Pod,
    Service,
    StatefulSet,
)
from dovetail.podfit.table import NodeTable


class UnitRecord(msgspec.Struct, frozen=True):
    """A unit that the ledger has, by the uid of the pod that holds it."""

    type: str
    node: str
    is_stock: bool
    since: int
    """Unix seconds."""


class VolumeTies(msgspec.Struct, frozen=True):
    """What the volumes of a guest demand of its node."""

    demands: tuple[tuple[NodeSelectorTerm, ...], ...] = ()
    """Of each volume, terms of which the node has to meet one."""
    lacking: str = ""
    """In words, what has to be there before the guest can go anywhere; empty if nothing has."""


class StockSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How stock is held, as the operator was told."""

    namespace: str = "dovetail"
    """Where sleepers live."""
    image: str = "alpine:3.15.0"


class MachineSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    machine: Machine
    spec: MachineSpec
    """In force: the newest that was accepted."""
    accepted_generation: int
    faults: tuple[str, ...] = ()
    """Of the newest, if it was not accepted: each with the field's path."""
    settings: StockSettings
    now: datetime
    table: NodeTable
    """Of the whole cluster. A pod that holds a unit counts on the unit's node, bound or not."""
    nodes: Mapping[str, Node]
    """Of the pool, as far as they exist."""
    guests: Mapping[str, Pod]
    """By uid, like sleepers and units: of this group."""
    sleepers: Mapping[str, Pod]
    units: Mapping[str, UnitRecord]
    gone: frozenset[str]
    """Holders of units of whom it is certain that they are no more."""
    volumes: Mapping[str, VolumeTies] = {}
    """By uid: of guests that wait."""
    namespaces: Mapping[str, Namespace]
    gpus_of_others: Mapping[str, int]
    """By node: GPUs that the ledger has for other consumers than machines."""
    pool: MachineNodePool | None = None
    stateful_sets: Mapping[str, StatefulSet] = {}
    """By name, like those that follow: owned by this Machine."""
    services: Mapping[str, Service] = {}
    shapes: Mapping[str, MachineShape] = {}
