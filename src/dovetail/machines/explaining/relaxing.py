"""Relaxing: the smallest changes after which a guest that waits would be sold a unit.

Every remedy is tried on the case, by itself; where none helps, two together. Each trial is a
judgement like that of the guest itself, so nothing is said to help that does not. Trials are
bounded, for two together grow with the square of the remedies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, product

from dovetail.core.explanation import Relaxation
from dovetail.core.explanation_text import guest_relaxation
from dovetail.machines.explaining.cases import GuestCase
from dovetail.machines.explaining.judging import Judgement, judge
from dovetail.machines.explaining.remedies import remedies_for
from dovetail.machines.explaining.remedies.remedy import Remedy

MOST_SHOWN = 6
MOST_TRIALS = 150


class _Trials:
    def __init__(self, case: GuestCase) -> None:
        self._case = case
        self._left = MOST_TRIALS

    def first(self, choices: Iterable[Sequence[Remedy]]) -> Relaxation | None:
        """The first choice of remedies that helps."""
        for chosen in choices:
            if self._left <= 0:
                return None
            self._left -= 1
            case = self._case
            for remedy in chosen:
                case = remedy.suppose(case)
            nodes = len(judge(case).fitting)
            if nodes:
                return Relaxation(
                    changes=tuple(remedy.change for remedy in chosen),
                    hosts=nodes,
                    query=" ".join(filter(None, (remedy.query for remedy in chosen))),
                    words=guest_relaxation([remedy.words for remedy in chosen], nodes),
                )
        return None


def relaxations(case: GuestCase, found: Judgement) -> tuple[Relaxation, ...]:
    """What would help, one for each kind of change."""
    groups = list(remedies_for(case, found))
    trials = _Trials(case)
    single = [trials.first([each] for each in alternatives) for alternatives in groups]
    helping = [each for each in single if each is not None]
    if not helping:
        helping = list(_pairs(groups, trials))
    return tuple(helping[:MOST_SHOWN])


def _pairs(groups: Sequence[Sequence[Remedy]], trials: _Trials) -> Iterator[Relaxation]:
    for one, other in combinations(groups, 2):
        found = trials.first(product(one, other))
        if found is not None:
            yield found
