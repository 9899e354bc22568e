"""Filtered nodes: which nodes pass all filters for a pod, and why the others do not, when asked.

The node table makes one for each question of the scheduler and the extender. A decision needs the
mask alone. Reasons, words and the explanation are worked out when somebody wants them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from dovetail.core.columns import Floats, Mask
from dovetail.core.explanation import (
    Counted,
    Explanation,
    Finding,
    PlaceFindings,
    Reason,
    Stage,
    Verdict,
)
from dovetail.core.explanation_text import FILTER_TEXTS, summary_of_nodes
from dovetail.podfit.filters import FILTERS, NodeFilter, resources
from dovetail.podfit.nodes import Nodes
from dovetail.podfit.pod_request import PodRequest


class FilteredNodes:
    """Reasons are worked out from the nodes as they are: ask before they change."""

    __slots__ = ("_nodes", "_present", "_request", "_steps", "mask")

    def __init__(
        self,
        nodes: Nodes,
        request: PodRequest,
        without: Reason | None = None,
        among: Mask | None = None,
    ) -> None:
        """`without`: the filter of this token lets every node pass. `among`: no other nodes are
        looked at; None: all are."""
        self._nodes = nodes
        self._request = request
        self._present = nodes.present if among is None else nodes.present & among
        self._steps: list[tuple[NodeFilter, Mask]] = []
        mask = self._present.copy()
        for step in FILTERS:
            passing = None if step.TOKEN is without else step.passing(nodes, request)
            if passing is not None:
                mask &= passing
                self._steps.append((step, passing))
        self.mask = mask
        """By row, whether the node fits."""

    def reasons(self) -> Counter[str]:
        """How many nodes were ruled out by what; each node by the first filter it fails."""
        found: Counter[str] = Counter()
        left = self._present
        for step, passing in self._steps:
            failed = left & ~passing
            if failed.any():
                found += step.reasons(self._nodes, self._request, failed)
            left = left & passing
        return found

    def why(self, row: int) -> str:
        """The first thing the node misses, and by how much; empty if it fits."""
        if not self._present[row]:
            return "there is no such node"
        for step, passing in self._steps:
            if not passing[row]:
                return step.why(self._nodes, self._request, row)
        return ""

    def __str__(self) -> str:
        """In the way of kube-scheduler: 0/5 nodes are available: 3 Insufficient cpu, ..."""
        return summary_of_nodes(int(self.mask.sum()), int(self._present.sum()), self.reasons())

    def explanation(self, nearest: int = 5) -> Explanation:
        """With so many of the nodes that lack least, if none fits."""
        fitting = int(self.mask.sum())
        return Explanation(
            verdict=self.verdict(),
            summary=str(self),
            of=Counted.NODES,
            total=int(self._present.sum()),
            fitting=fitting,
            funnel=tuple(self.stages()),
            nearest=() if fitting else tuple(map(self._place, self._nearest(nearest))),
            relaxations=(),
        )

    def verdict(self) -> Verdict:
        if self.mask.any():
            return Verdict.FITS
        return Verdict.NOT_NOW if self.passing_if_idle().any() else Verdict.NEVER

    def stages(self) -> Iterator[Stage]:
        """How many nodes are left after each filter that rules any out."""
        left = self._present
        for step, passing in self._steps:
            left = left & passing
            yield Stage(
                reason=step.TOKEN,
                group=None,
                constraint=step.FIELD,
                left=int(left.sum()),
                words=FILTER_TEXTS[step.TOKEN],
            )

    def passing_if_idle(self) -> Mask:
        """By row, whether the node would fit if nothing were in use."""
        mask = self._present
        for step, _ in self._steps:
            passing = step.passing_if_idle(self._nodes, self._request)
            mask = mask if passing is None else mask & passing
        return mask

    def _nearest(self, count: int) -> list[int]:
        """Rows by the number of filters that they fail, then by what they lack of the amounts."""
        rows = np.flatnonzero(self._present)
        failed = np.zeros(len(rows), np.int64)
        for _, passing in self._steps:
            failed += ~passing[rows]
        order = np.lexsort((rows, self._lacking()[rows], failed))
        nearest: list[int] = rows[order[:count]].tolist()
        return nearest

    def _lacking(self) -> Floats:
        """By row: the shares of the amounts that are not free, added up."""
        lacking = np.zeros(self._nodes.size)
        for name, amount in self._request.amounts:
            column = self._nodes.resources.free.get(name)
            free = 0 if column is None else column.values
            lacking += np.clip(1 - free / amount, 0, 1)
        return lacking

    def _place(self, row: int) -> PlaceFindings:
        findings = [
            finding
            for step, passing in self._steps
            if not passing[row]
            for finding in self._findings(step, row)
        ]
        name = self._nodes.rows.names[row]
        return PlaceFindings(name=name, uuid=None, fits=False, findings=tuple(findings))

    def _findings(self, step: NodeFilter, row: int) -> Iterator[Finding]:
        """What the node misses of one filter: each amount that is short, or the filter's words."""
        nodes, request = self._nodes, self._request
        if step.TOKEN is Reason.AMOUNT:
            for each in resources.shortages(nodes, request, row):
                yield Finding(
                    reason=step.TOKEN,
                    group=None,
                    constraint=f"{each.name}:{resources.amount_text(each.name, each.wanted)}",
                    met=False,
                    ever=each.capacity >= each.wanted,
                    provider=nodes.rows.names[row],
                    provider_uuid=None,
                    words=each.words,
                    wanted=each.wanted,
                    free=each.free,
                    capacity=each.capacity,
                    short=each.wanted - each.free,
                )
            return
        idle = step.passing_if_idle(nodes, request)
        yield Finding(
            reason=step.TOKEN,
            group=None,
            constraint=step.FIELD,
            met=False,
            ever=idle is None or bool(idle[row]),
            provider=nodes.rows.names[row],
            provider_uuid=None,
            words=step.why(nodes, request, row),
        )
