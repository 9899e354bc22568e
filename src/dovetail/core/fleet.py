"""Fleet documents: one JSON object a line, a whole tree or a consumer each.

    {"name": "host1", "inventories": {"DISK_GB": 2000}, "children": [{"name": "host1_numa0", ...}]}
    {"consumer": "<uuid>", "allocations": {"host1_numa0": {"VCPU": 2}}}

`FleetReader` takes the document in pieces as it arrives and checks it on the way, so that what
comes out is known to be good before anything is written. Every complaint names line and place.
There are millions of lines, and none refers to itself: garbage collection need not look at them.
"""

from __future__ import annotations

import re
import uuid as uuids
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated

import msgspec
from msgspec import Meta

from dovetail.core.errors import BadFleet
from dovetail.core.inventory import MAX_INT, Inventory
from dovetail.core.selectors.attributes import Attributes

Positive = Annotated[int, Meta(ge=1, le=MAX_INT)]
Name = Annotated[str, Meta(pattern=r"^[A-Z0-9_]{1,255}\Z")]
Text = Annotated[str, Meta(min_length=1, max_length=255)]

DEFAULT_OWNER = "fleet"
LONGEST_LINE = 4 * 2**20
"""Bytes; a line is decoded in one go, while nobody else is served."""
CANONICAL = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A UUID as it is written by default."""
NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
"""In JSON; an escaped backslash before it makes it text."""


class InventoryLine(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    total: Positive
    reserved: Annotated[int, Meta(ge=0, le=MAX_INT)] = 0
    min_unit: Positive = 1
    max_unit: Positive = MAX_INT
    step_size: Positive = 1
    allocation_ratio: Annotated[float, Meta(gt=0, le=1e9)] = 1.0


class Line(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """Everything a line may say; a provider has a `name`, a consumer a `consumer`."""

    name: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    uuid: str | None = None
    traits: list[Name] = []
    aggregates: list[str] = []
    attributes: Attributes = {}
    inventories: dict[Name, Positive | InventoryLine] = {}
    children: list[Line] = []
    consumer: str | None = None
    project_id: Text = DEFAULT_OWNER
    user_id: Text = DEFAULT_OWNER
    consumer_type: Name | None = None
    allocations: dict[str, dict[Name, Positive]] = {}


class PlannedProvider(msgspec.Struct, gc=False):
    name: str
    uuid: str
    parent: int | None
    """Position in the plan; likewise the root."""
    root: int
    traits: list[str]
    aggregates: list[str]
    inventories: dict[str, Inventory]
    used: dict[str, int]
    attributes: dict[str, str] = {}


class PlannedConsumer(msgspec.Struct, gc=False):
    uuid: str
    project: str
    user: str
    consumer_type: str | None
    allocations: list[tuple[int, str, int]]
    """Position of the provider, class, amount."""


class FleetPlan(msgspec.Struct):
    providers: list[PlannedProvider] = []
    consumers: list[PlannedConsumer] = []


class FleetReader:
    """Feed it bytes, then `finish` for the plan."""

    def __init__(self) -> None:
        self._decoder = msgspec.json.Decoder(Line)
        self._rest: list[bytes] = []
        self._rest_bytes = 0
        """Of a line whose end has not come yet."""
        self._line = 0
        self._plan = FleetPlan()
        self._positions: dict[str, int] = {}
        """Of providers, by name and by uuid."""
        self._consumers: set[str] = set()
        self._pending: list[tuple[int, Line]] = []

    def feed(self, data: bytes) -> None:
        first, *others = data.split(b"\n")
        self._hold(first)
        for begun in others:
            self._take_held()
            self._hold(begun)

    def _hold(self, part: bytes) -> None:
        self._rest.append(part)
        self._rest_bytes += len(part)
        if self._rest_bytes > LONGEST_LINE:
            told = f"is longer than {LONGEST_LINE} bytes: a line has one tree, or one consumer"
            raise BadFleet(self._line + 1, "", told)

    def _take_held(self) -> None:
        line = b"".join(self._rest)
        self._rest, self._rest_bytes = [], 0
        self._take(line)

    def finish(self) -> FleetPlan:
        """The plan. Consumers come last: they may stand before the providers they hold."""
        self._take_held()
        for number, line in self._pending:
            self._line = number
            self._plan.consumers.append(self._planned_consumer(line))
        return self._plan

    def _take(self, text: bytes) -> None:
        self._line += 1
        if not text.strip():
            return
        if b"\\u0000" in text and NUL.search(text):
            # PostgreSQL cannot hold them, and SQLite had better not.
            raise BadFleet(self._line, "", "NUL characters are not allowed")
        try:
            line = self._decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadFleet(self._line, "", str(error)) from error
        if line.consumer is not None:
            if line.name is not None:
                raise BadFleet(self._line, "", "has both a name and a consumer: say one of them")
            self._pending.append((self._line, line))
        else:
            self._add(line, None, None, "")

    def _add(self, line: Line, parent: int | None, root: int | None, where: str) -> None:
        if line.name is None:
            raise BadFleet(self._line, where, "a provider needs a name")
        if line.allocations:
            raise BadFleet(self._line, where, "a provider has no allocations, a consumer has")
        where = where or line.name
        position = len(self._plan.providers)
        uuid = self._uuid(line.uuid, where) if line.uuid else str(uuids.uuid4())
        # Bare metal nodes often have their own UUID as a name.
        for key in dict.fromkeys((line.name, uuid)):
            if key in self._positions:
                raise BadFleet(self._line, where, f"{key} stands in this fleet already")
            self._positions[key] = position
        self._plan.providers.append(
            PlannedProvider(
                name=line.name,
                uuid=uuid,
                parent=parent,
                root=position if root is None else root,
                traits=sorted(set(line.traits)),
                aggregates=sorted({self._uuid(item, where) for item in line.aggregates}),
                inventories=dict(self._inventories(line, where)),
                used={},
                attributes=line.attributes,
            )
        )
        for child in line.children:
            self._add(
                child, position, position if root is None else root, f"{where} > {child.name}"
            )

    def _uuid(self, text: str, where: str) -> str:
        if CANONICAL.fullmatch(text):
            return text
        try:
            return str(uuids.UUID(text))
        except ValueError as error:
            raise BadFleet(self._line, where, f"{text!r} is no UUID") from error

    def _inventories(self, line: Line, where: str) -> Iterator[tuple[str, Inventory]]:
        for name, given in line.inventories.items():
            if isinstance(given, int):
                yield name, plain_inventory(given)
                continue
            inventory = Inventory(**msgspec.structs.asdict(given))
            if inventory.reserved > inventory.total:
                raise BadFleet(self._line, f"{where}: {name}", "reserved is greater than total")
            yield name, inventory

    def _planned_consumer(self, line: Line) -> PlannedConsumer:
        assert line.consumer is not None
        where = f"consumer {line.consumer}"
        uuid = self._uuid(line.consumer, where)
        if uuid in self._consumers:
            raise BadFleet(self._line, where, "stands in this fleet already")
        self._consumers.add(uuid)
        if not line.allocations or not all(line.allocations.values()):
            raise BadFleet(self._line, where, "a consumer holds at least one resource")
        return PlannedConsumer(
            uuid=uuid,
            project=line.project_id,
            user=line.user_id,
            consumer_type=line.consumer_type,
            allocations=list(self._allocations(line, where)),
        )

    def _allocations(self, line: Line, where: str) -> Iterator[tuple[int, str, int]]:
        for key, amounts in line.allocations.items():
            position = self._positions.get(key)
            if position is None:
                raise BadFleet(self._line, where, f"no provider {key!r} stands in this fleet")
            provider = self._plan.providers[position]
            for name, amount in amounts.items():
                self._use(provider, name, amount, where)
                yield position, name, amount

    def _use(self, provider: PlannedProvider, name: str, amount: int, where: str) -> None:
        inventory = provider.inventories.get(name)
        at = f"{where}: {name} of {provider.name}"
        if inventory is None:
            raise BadFleet(self._line, at, "it has none")
        if not inventory.allows(amount):
            raise BadFleet(
                self._line,
                at,
                f"{amount} is not from {inventory.min_unit} to {inventory.max_unit} "
                f"in steps of {inventory.step_size}",
            )
        used = provider.used.get(name, 0) + amount
        if used > inventory.capacity:
            raise BadFleet(
                self._line, at, f"{used} in use would exceed the capacity of {inventory.capacity}"
            )
        provider.used[name] = used


@lru_cache(maxsize=1024)
def plain_inventory(total: int) -> Inventory:
    """A fleet has few different ones."""
    return Inventory(total=total)
