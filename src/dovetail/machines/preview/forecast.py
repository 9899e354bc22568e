"""Forecast: how many more units of each type would really fit on the pool's nodes, and why no more.

`dovetail machines forecast` asks. Beyond the stock: all units that are to be held have their place
first, wherever that leaves the most room, for sleepers can be moved. Each type by itself: what two
types could each have more of, they may not have both.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from dovetail.machines.preview.pool_parts import (
    NOT_READY_WORDS,
    UNSERVED_WORDS,
    PoolPart,
    idle_table,
    lacking_words,
    pool_parts,
    request_of,
    table_of,
    whole_stock,
)
from dovetail.machines.selling.standing import MachineStanding
from dovetail.machines.snapshot import MachineSnapshot
from dovetail.machines.stock.families import FamilyBook
from dovetail.machines.stock.places import wanted_replicas
from dovetail.podfit.packing import STEPS, MostThatFit, PodsToPack, Unpackable, most, pack
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.table import NodeTable

NONE = MostThatFit(0, 0)


class TypeForecast(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    maximum: int
    sold: int
    held: int
    """Sleepers that have their place."""
    short: int
    """Sleepers that there should be, and are not."""
    more: MostThatFit
    """That would fit now, beside all that runs."""
    more_if_idle: MostThatFit
    """That would fit if nothing but units were on the nodes."""
    node: str | None
    """The one that comes nearest to taking one more."""
    words: str
    """What it lacks."""


def forecast(snapshot: MachineSnapshot, budget: int = STEPS) -> tuple[TypeForecast, ...]:
    """By type, in the order of the specification; `budget` is what packing may take for each."""
    standing = MachineStanding(snapshot)
    found = {
        each.type: each
        for part in pool_parts(standing)
        for each in _PartForecast(standing, part, budget).types()
    }
    return tuple(found[each.name] for each in snapshot.spec.machine_types)


class _PartForecast:
    def __init__(self, standing: MachineStanding, part: PoolPart, budget: int) -> None:
        self._standing, self._part, self._budget = standing, part, budget
        self._stock = whole_stock(standing, part)
        self._now = table_of(standing, part, moving=True)
        self._idle = idle_table(standing, part)

    def types(self) -> Iterator[TypeForecast]:
        for book in self._part.books:
            for name in book.family.available:
                yield self._type(book, name)

    def _type(self, book: FamilyBook, name: str) -> TypeForecast:
        is_served = name not in self._standing.survey.unserved
        wanted = wanted_replicas(book)[name] if is_served else 0
        held = self._standing.sleepers.count(name)
        more, if_idle = NONE, NONE
        node, words = None, NOT_READY_WORDS if is_served else UNSERVED_WORDS
        if self._part.nodes:
            request = request_of(self._standing, name)
            more, if_idle = self._most(self._now, request), self._most(self._idle, request)
            node, words = self._blocking(PodsToPack(request, more.at_least + 1))
        return TypeForecast(
            type=name,
            maximum=book.family.available[name],
            sold=book.sold[name],
            held=held,
            short=max(wanted - held, 0),
            more=more,
            more_if_idle=if_idle,
            node=node,
            words=words,
        )

    def _most(self, table: NodeTable, request: PodRequest) -> MostThatFit:
        return most(table, request, beside=self._stock, budget=self._budget)

    def _blocking(self, asked: PodsToPack) -> tuple[str | None, str]:
        """Where and why there is no room for all of these; the stock itself may find none."""
        answer = pack(self._now, [*self._stock, asked], budget=self._budget)
        if not isinstance(answer, Unpackable):
            return None, ""
        words = lacking_words(answer)
        if answer.kind < len(self._stock):
            missing, name = answer.wanted - answer.fitting, self._part.tops[answer.kind]
            words = f"{missing} of {name} find no room themselves: {words}"
        return answer.node, words
