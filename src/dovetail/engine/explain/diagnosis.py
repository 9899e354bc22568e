"""Diagnosis: what the engine found out about a request, and the explanation that it makes.

The engine knows providers by row, and explanations name them. So `service/explanations` collects a
diagnosis from a snapshot, a door looks up names, and `explanation` puts both together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import UNSET
from msgspec.structs import astuple

from dovetail.core import explanation_text
from dovetail.core.explanation import (
    ConstraintChange,
    ConsumerMove,
    Counted,
    Explanation,
    Finding,
    HostAddition,
    MissingAmount,
    MovePlan,
    NamedPlace,
    PlaceFindings,
    Relaxation,
    Stage,
    Verdict,
)
from dovetail.core.request import Request
from dovetail.engine.explain.host import HostFindings, ProviderFinding
from dovetail.engine.explain.relax import RelaxedRequest

if TYPE_CHECKING:
    from dovetail.engine.moves.destinations import PlannedMove, PlannedMoves

UUID = re.compile("-".join(f"[0-9a-fA-F]{{{digits}}}" for digits in (8, 4, 4, 4, 12)))
"""In texts: looked up among the names, however many there are."""
T = TypeVar("T", Stage, Finding, Relaxation)
Names = Mapping[str, str]
"""Of providers, by UUID."""


class Diagnosis(msgspec.Struct, frozen=True):
    hosts: int
    fitting: int
    could: int
    """Hosts that would fit if nothing were in use; counted only when none fits."""
    funnel: Sequence[Stage]
    nearest: Sequence[HostFindings]
    relaxations: Sequence[RelaxedRequest]
    uuids: Mapping[int, str]
    """Of the rows that are mentioned."""
    more_relaxations: int = 0
    """That change as little, and are not among those."""
    emptied: Sequence[int] = ()
    """Rows of the roots of hosts that would fit with nothing in use: some of them."""
    moves: Sequence[PlannedMoves] | None = None
    """Whom to move, where that was asked."""
    roots: Mapping[int, int] = {}
    """By row of a move: that of its root."""
    cut_short: bool = False
    named: Sequence[str] = ()
    """UUIDs of providers that the request names."""

    @property
    def mentioned(self) -> list[str]:
        """UUIDs of all providers that the explanation speaks of."""
        return [*self.uuids.values(), *self.named]

    @property
    def verdict(self) -> Verdict:
        if self.fitting:
            return Verdict.FITS
        return Verdict.NOT_NOW if self.could else Verdict.NEVER

    def explanation(self, names: Names, query_text: Callable[[Request], str]) -> Explanation:
        """`query_text` writes a request in the way in which it is asked."""
        explanation = Explanation(
            verdict=self.verdict,
            summary=explanation_text.summary_of_hosts(
                self.verdict, self.hosts, self.fitting, self.could, self.funnel
            ),
            of=Counted.HOSTS,
            total=self.hosts,
            hosts=self.hosts,
            fitting=self.fitting,
            funnel=tuple(self.funnel),
            nearest=tuple(self._place(host, names) for host in self.nearest),
            relaxations=tuple(relaxation_of(one, query_text) for one in self.relaxations),
            more_relaxations=self.more_relaxations,
            emptied=tuple(self._named(row, names) for row in self.emptied),
            additions=tuple(self._addition(host, names) for host in self.nearest if host.additions),
            moves=UNSET
            if self.moves is None
            else tuple(self._plan(plan, names) for plan in self.moves),
            cut_short=self.cut_short,
        )
        return in_names(explanation, names)

    def _named(self, row: int, names: Names) -> NamedPlace:
        uuid = self.uuids[row]
        return NamedPlace(name=names.get(uuid), uuid=uuid)

    def _addition(self, host: HostFindings, names: Names) -> HostAddition:
        added = tuple(
            MissingAmount(
                provider=names.get(self.uuids[row]),
                provider_uuid=self.uuids[row],
                resource_class=name,
                amount=amount,
            )
            for row, name, amount in host.additions
        )
        place = self._named(host.root, names)
        texts = [
            (one.provider or one.provider_uuid, one.resource_class, one.amount) for one in added
        ]
        words = explanation_text.addition(place.name or place.uuid, texts)
        return HostAddition(host=place, added=added, smallest=host.fewest_additions, words=words)

    def _plan(self, plan: PlannedMoves, names: Names) -> MovePlan:
        moves = tuple(self._move(move, names) for move in plan.moves)
        host = self._named(plan.root, names)
        return MovePlan(
            host=host,
            moves=moves,
            swap=plan.swap,
            smallest=plan.leaving.smallest and not self.cut_short,
            words=explanation_text.move_plan(host.name or host.uuid, moves, swap=plan.swap),
        )

    def _move(self, move: PlannedMove, names: Names) -> ConsumerMove:
        resources: Counter[str] = Counter()
        for (_, name), amount in move.holder.held.items():
            resources[name] += amount
        allocations: dict[str, dict[str, int]] = {}
        for (row, name), amount in move.to.items():
            allocations.setdefault(self.uuids[row], {})[name] = amount
        source = self._named(self.roots[next(iter(move.holder.held))[0]], names)
        to = self._named(self.roots[next(iter(move.to))[0]], names) if move.to else None
        return ConsumerMove(
            consumer=move.holder.consumer,
            resources=dict(resources),
            source=source,
            to=to,
            allocations=allocations,
            after=move.after,
        )

    def _place(self, host: HostFindings, names: Names) -> PlaceFindings:
        uuid = self.uuids[host.root]
        return PlaceFindings(
            name=names.get(uuid),
            uuid=uuid,
            fits=all(one.met for one in host.findings),
            findings=tuple(self._finding(one, names) for one in host.findings),
        )

    def _finding(self, found: ProviderFinding, names: Names) -> Finding:
        one, supply, reason = found.constraint, found.supply, found.reason
        uuid = None if found.row is None else self.uuids[found.row]
        name = None if uuid is None else names.get(uuid, uuid)
        finding = Finding(
            reason=reason,
            group=one.group,
            constraint=one.text,
            met=found.met,
            ever=found.ever,
            provider=name,
            provider_uuid=uuid,
            words=explanation_text.shortage(one, [astuple(each) for each in found.shortages])
            if found.shortages
            else explanation_text.finding(one, reason, supply, name, met=found.met),
        )
        if supply is None:
            return finding
        return msgspec.structs.replace(
            finding,
            wanted=one.amount,
            free=supply.free,
            capacity=supply.capacity,
            short=max(one.amount - supply.free, 0),
        )


def relaxation_of(found: RelaxedRequest, query_text: Callable[[Request], str]) -> Relaxation:
    changes = tuple(
        ConstraintChange(
            reason=one.reason,
            group=one.group,
            old=one.text,
            new=None if other is None else other.text,
        )
        for one, other in found.changes.items()
    )
    vanishing = [explanation_text.constraint_text(one) for one in found.vanishing]
    return Relaxation(
        changes=changes,
        hosts=found.trees,
        query=query_text(found.request),
        words=explanation_text.relaxation(found.changes, found.trees, vanishing),
        vanishing=tuple(vanishing),
        smallest=found.smallest,
    )


def in_names(explanation: Explanation, names: Names) -> Explanation:
    """With the names of providers in place of their UUIDs, in all that people read."""

    def name_of(uuid: re.Match[str]) -> str:
        return names.get(uuid[0], uuid[0])

    def told(text: str) -> str:
        return UUID.sub(name_of, text)

    def tell(one: T) -> T:
        return msgspec.structs.replace(one, words=told(one.words))

    nearest = [
        msgspec.structs.replace(place, findings=tuple(map(tell, place.findings)))
        for place in explanation.nearest
    ]
    return msgspec.structs.replace(
        explanation,
        summary=told(explanation.summary),
        funnel=tuple(map(tell, explanation.funnel)),
        nearest=tuple(nearest),
        relaxations=tuple(map(tell, explanation.relaxations)),
    )
