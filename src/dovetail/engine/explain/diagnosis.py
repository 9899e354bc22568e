"""Diagnosis: what the engine found out about a request, and the explanation that it makes.

The engine knows providers by row, and explanations name them. So `service/explanations` collects a
diagnosis from a snapshot, a door looks up names, and `explanation` puts both together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from dovetail.core import explanation_text
from dovetail.core.explanation import (
    ConstraintChange,
    Counted,
    Explanation,
    Finding,
    PlaceFindings,
    Relaxation,
    Stage,
    Verdict,
)
from dovetail.core.request import Request
from dovetail.engine.explain.host import HostFindings, ProviderFinding
from dovetail.engine.explain.relax import RelaxedRequest

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

    @property
    def verdict(self) -> Verdict:
        if self.fitting:
            return Verdict.FITS
        return Verdict.NOT_NOW if self.could else Verdict.NEVER

    def explanation(self, names: Names, query_text: Callable[[Request], str]) -> Explanation:
        """`query_text` writes a request in the way in which it is asked."""
        return Explanation(
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
            words=explanation_text.finding(one, reason, supply, name, met=found.met),
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
    return Relaxation(
        changes=changes,
        hosts=found.trees,
        query=query_text(found.request),
        words=explanation_text.relaxation(found.changes, found.trees),
    )
