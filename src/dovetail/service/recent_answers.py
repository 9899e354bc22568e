"""Bounded cache of the answers of late: ties a claim to the candidates that it was chosen from.

Candidates and the claim of one of them are two calls that know nothing of each other. What ties
them is the set of providers: GET /allocation_candidates remembers the first candidates of each
answer by it, and `service.claims` looks a claim up before it writes the decision down.
"""

from __future__ import annotations

from collections import OrderedDict

from dovetail.core.claim import Allocations
from dovetail.service.decisions import CandidateAnswer

MOST_CANDIDATES = 4096
"""Of all answers together."""


class RecentAnswers:
    """Least recently given is forgotten first. Used on the event loop only."""

    def __init__(self) -> None:
        self._answers: OrderedDict[frozenset[bytes], tuple[CandidateAnswer, int]] = OrderedDict()

    def remember(self, answer: CandidateAnswer) -> None:
        giving = [at for at, share in enumerate(answer.shares) if share]
        for position, uuids in enumerate(answer.providers):
            key = frozenset([uuids[at] for at in giving])
            self._answers[key] = (answer, position)
            self._answers.move_to_end(key)
        while len(self._answers) > MOST_CANDIDATES:
            self._answers.popitem(last=False)

    def recall(self, allocations: Allocations) -> tuple[CandidateAnswer, int] | None:
        """The last answer that held these allocations, and where in it they stood."""
        found = self._answers.get(frozenset(uuid.encode() for uuid in allocations))
        if found is None or found[0].allocations(found[1]) != allocations:
            return None
        return found
