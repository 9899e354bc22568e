"""Explaining: why one app fits a cluster or not, by requirement, and what would help.

`dovetail intents explain` and its door ask. The cluster is packed by itself, with its own names.
What would help, `relaxing` finds out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import msgspec
import numpy as np
from msgspec.structs import replace

from dovetail.core.columns import Mask
from dovetail.core.explanation import Counted, Explanation, PlaceFindings, Stage, Verdict
from dovetail.intents.group import AllocatableRequirement, AnyRequirement, LabelRequirement
from dovetail.intents.hpa.demand import AppHardware, WorkloadDemand
from dovetail.intents.hpa.packer import Packer
from dovetail.intents.hpa.refusals import refusal_of
from dovetail.intents.hpa.relaxing import AppRelaxations, fit_of, reason_of, requirement_text
from dovetail.intents.names import ClusterName
from dovetail.podfit.objects import SelectorRequirement
from dovetail.podfit.packing import pack
from dovetail.podfit.packing.answers import Unpackable

MOST_SHOWN = 6


class OptionVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an app by itself gets an optional requirement."""

    consumer: str
    requirement: str
    weight: int
    granted: bool
    words: str = ""
    """Why not."""


class HardwareVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Of one app on one cluster."""

    app: str
    cluster: ClusterName
    explanation: Explanation
    score: int = 0
    options: tuple[OptionVerdict, ...] = ()
    contention: str = ""
    """With which apps of the group it cannot be there, and for what."""


def unused_verdict(app: str, cluster: ClusterName, words: str) -> HardwareVerdict:
    """Of a cluster that was not looked at."""
    explanation = Explanation(
        verdict=Verdict.NOT_NOW,
        summary=words,
        of=Counted.NODES,
        total=0,
        fitting=0,
        funnel=(),
        nearest=(),
        relaxations=(),
    )
    return HardwareVerdict(app=app, cluster=cluster, explanation=explanation)


class AppOnNodes:
    """One app on the nodes of one cluster, by itself."""

    def __init__(self, app: AppHardware, packer: Packer, idle: Callable[[], Packer]) -> None:
        """`idle`: the same nodes with nothing on them."""
        self._app, self._packer, self._idle = app, packer, idle

    def explanation(self) -> Explanation:
        demands = self._app.demands(0)
        fit = fit_of(self._packer, self._app)
        if fit is not None:
            on = {name for counts in fit.nodes for name in counts}
            return self._explanation(Verdict.FITS, "it fits", len(on))
        refusal = refusal_of(self._packer, demands)
        words = refusal.words_for({name: name for name in refusal.nodes})
        fits_idle = fit_of(self._idle(), self._app) is not None
        verdict = Verdict.NOT_NOW if fits_idle else Verdict.NEVER
        later = "; it would fit if nothing were in use" if fits_idle else ""
        return replace(
            self._explanation(verdict, f"{words}{later}", 0),
            nearest=self._nearest(demands),
            relaxations=tuple(islice(AppRelaxations(self._app, self._packer).found(), MOST_SHOWN)),
        )

    def option_words(self, option: int) -> str:
        """Why the app does not get an option, were it the only one; empty if it could."""
        if fit_of(self._packer, self._app, 1 << option) is not None:
            return "not together with others that weigh more"
        refusal = refusal_of(self._packer, self._app.demands(1 << option))
        return refusal.words_for({name: name for name in refusal.nodes})

    def _explanation(self, verdict: Verdict, summary: str, fitting: int) -> Explanation:
        return Explanation(
            verdict=verdict,
            summary=summary,
            of=Counted.NODES,
            total=int(self._packer.table.nodes.present.sum()),
            fitting=fitting,
            funnel=tuple(self._stages()),
            nearest=(),
            relaxations=(),
        )

    # -- by requirement

    def _stages(self) -> Iterator[Stage]:
        """By consumer: how many nodes are left for one of its pods after each requirement."""
        for demand, consumers in zip(self._app.demands(0), self._app.consumers, strict=True):
            left = self._rows(
                self._packer.matching(replace(demand.request, node_labels=(), node_terms=None))
            )
            for each in consumers:
                for requirement in each.consumer.requirements:
                    if requirement.mandatory:
                        left = left & self._meeting(requirement, demand)
                        yield Stage(
                            reason=reason_of(requirement),
                            group=each.consumer.name,
                            constraint=requirement_text(requirement),
                            left=int(left.sum()),
                            words=f"{each.consumer.name}: {requirement_text(requirement)}",
                        )

    def _rows(self, names: Sequence[str]) -> Mask:
        nodes = self._packer.table.nodes
        found: Mask = np.zeros(nodes.size, np.bool_)
        found[[nodes.rows.row(name) for name in names]] = True
        return found

    def _meeting(self, requirement: AnyRequirement, demand: WorkloadDemand) -> Mask:
        nodes = self._packer.table.nodes
        if isinstance(requirement, LabelRequirement):
            term = SelectorRequirement(
                key=requirement.key, operator=requirement.operator, values=requirement.values
            )
            return nodes.labels.meeting(term)
        if isinstance(requirement, AllocatableRequirement):
            amounts = dict(demand.request.amounts)
            wanted = [(requirement.resource, amounts.get(requirement.resource, 0))]
        else:
            key = requirement.selector or requirement.class_name
            own = [each for each in demand.devices if each.key == key]
            wanted = list(self._packer.devices.amounts(own))
        names = [
            name
            for name in self._packer.ready
            if all(self._packer.table.free(name, one) >= amount for one, amount in wanted)
        ]
        return self._rows(names)

    def _nearest(self, demands: Sequence[WorkloadDemand]) -> tuple[PlaceFindings, ...]:
        """Nodes that come nearest to the first pod that is one too many."""
        kinds = [each for demand in demands for each in self._packer.kinds(demand) or ()]
        found = pack(self._packer.table, kinds, among=self._packer.ready, budget=self._packer.steps)
        return found.explanation.nearest if isinstance(found, Unpackable) else ()
