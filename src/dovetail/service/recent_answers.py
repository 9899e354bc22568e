"""Bounded cache of the answers of late: ties a claim to the candidates that it was chosen from.

Candidates and the claim of one of them are two calls that know nothing of each other. What ties
them is the set of providers: GET /allocation_candidates remembers the first candidates of each
answer by it, and `service.claims` looks a claim up before it writes the decision down. Answers are
kept up to a number of candidates and up to a number of bytes, whichever is reached first: a caller
chooses how large its answers are.
"""

from __future__ import annotations

from collections import deque

import msgspec

from dovetail.core.claim import Allocations
from dovetail.service.decisions import CandidateAnswer

MOST_CANDIDATES = 4096
"""Of all answers together."""
MOST_BYTES = 16 * 2**20
"""Likewise, as `size_of` estimates them."""
SHARE_BYTES, PROVIDER_BYTES, SCORE_BYTES = 320, 160, 120
"""What a slot's amounts, a slot's provider in one candidate with its place in the key, and a score
take, on a 64-bit CPython."""

Key = frozenset[bytes]


class RememberedAnswer(msgspec.Struct, frozen=True):
    answer: CandidateAnswer
    keys: tuple[Key, ...]
    """Of its candidates, in their order."""
    size: int


class RecentAnswers:
    """Least recently given is forgotten first. Used on the event loop only."""

    def __init__(self) -> None:
        self._answers: deque[RememberedAnswer] = deque()
        self._by_key: dict[Key, tuple[CandidateAnswer, int]] = {}
        self._candidates = self._bytes = 0

    def remember(self, answer: CandidateAnswer) -> None:
        giving = [at for at, share in enumerate(answer.shares) if share]
        keys = tuple(frozenset([uuids[at] for at in giving]) for uuids in answer.providers)
        for position, key in enumerate(keys):
            self._by_key[key] = (answer, position)
        kept = RememberedAnswer(answer, keys, size_of(answer))
        self._answers.append(kept)
        self._candidates += len(keys)
        self._bytes += kept.size
        while self._candidates > MOST_CANDIDATES or self._bytes > MOST_BYTES:
            self._forget(self._answers.popleft())

    def _forget(self, kept: RememberedAnswer) -> None:
        self._candidates -= len(kept.keys)
        self._bytes -= kept.size
        for key in kept.keys:
            # A later answer may have held the same candidate.
            if self._by_key.get(key, (None, 0))[0] is kept.answer:
                del self._by_key[key]

    def recall(self, allocations: Allocations) -> tuple[CandidateAnswer, int] | None:
        """The last answer that held these allocations, and where in it they stood."""
        found = self._by_key.get(frozenset(uuid.encode() for uuid in allocations))
        if found is None or found[0].allocations(found[1]) != allocations:
            return None
        return found


def size_of(answer: CandidateAnswer) -> int:
    """About the bytes that an answer takes."""
    slots = len(answer.shares)
    providers = len(answer.providers) * slots * PROVIDER_BYTES
    scores = sum(map(len, answer.scores)) * SCORE_BYTES
    return len(answer.query) + slots * SHARE_BYTES + providers + scores
