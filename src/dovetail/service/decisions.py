"""Remembers what was asked, so that a claim that follows can be told as a decision.

Candidates and the claim of one of them are two calls that know nothing of each other. What ties
them is the set of providers: an answer's first candidates are remembered by it, for a while.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

import msgspec

from dovetail.engine import Search
from dovetail.engine.combine.round_robin import Block

REMEMBERED = 4096
"""Candidates, of all answers together."""
SHOWN = 10
"""Candidates of one answer."""

Allocations = Mapping[str, Mapping[str, int]]
"""Amounts by class by provider."""
Scores = Mapping[str, int]


class Answer(msgspec.Struct, frozen=True):
    """An answer as far as it is remembered: what was asked, and its first candidates."""

    query: str
    candidates: int
    shares: Sequence[Mapping[str, int]]
    """What each slot takes."""
    providers: Sequence[Sequence[bytes]]
    """By candidate the provider of each slot."""
    scores: Sequence[Scores] = ()

    def allocations(self, position: int) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        for uuid, share in zip(self.providers[position], self.shares, strict=True):
            held = found.setdefault(uuid.decode(), {}) if share else {}
            for name, amount in share.items():
                held[name] = held.get(name, 0) + amount
        return found


class Option(msgspec.Struct, frozen=True, omit_defaults=True):
    position: int
    """From 1, in the order of the answer."""
    allocations: dict[str, dict[str, int]]
    scores: Scores = {}


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    query: str
    outcome: str
    candidates: int
    chosen: Option
    passed_over: Sequence[Option]
    words: str

    def encoded(self) -> str:
        return msgspec.json.encode(self).decode()


def answer_of(query: str, search: Search, found: Block, scores: Sequence[Scores] = ()) -> Answer:
    return Answer(
        query,
        len(found),
        [slot.resources for slot in search.slots],
        search.snapshot.uuids.values[found[:SHOWN]].tolist(),
        scores[:SHOWN],
    )


class Recollection:
    """The answers of late. Used on the event loop only."""

    def __init__(self) -> None:
        self._answers: OrderedDict[frozenset[bytes], tuple[Answer, int]] = OrderedDict()

    def remember(self, answer: Answer) -> None:
        giving = [at for at, share in enumerate(answer.shares) if share]
        for position, uuids in enumerate(answer.providers):
            key = frozenset([uuids[at] for at in giving])
            self._answers[key] = (answer, position)
            self._answers.move_to_end(key)
        while len(self._answers) > REMEMBERED:
            self._answers.popitem(last=False)

    def recall(self, allocations: Allocations) -> tuple[Answer, int] | None:
        """The last answer that held these allocations, and where in it they stood."""
        found = self._answers.get(frozenset(uuid.encode() for uuid in allocations))
        if found is None or found[0].allocations(found[1]) != allocations:
            return None
        return found


def decided(answer: Answer, position: int, refusal: str | None = None) -> Decision:
    options = [
        Option(at + 1, answer.allocations(at), answer.scores[at] if answer.scores else {})
        for at in range(len(answer.providers))
    ]
    chosen = options.pop(position)
    return Decision(
        query=answer.query,
        outcome="claimed" if refusal is None else "refused",
        candidates=answer.candidates,
        chosen=chosen,
        passed_over=options,
        words=in_words(answer, chosen, refusal),
    )


def in_words(answer: Answer, chosen: Option, refusal: str | None) -> str:
    of = f"candidate {chosen.position} of {answer.candidates}"
    total = chosen.scores.get("total")
    why = f", score {total}" if total is not None else ""
    if refusal is not None:
        return f"Asked for {of}{why}, and refused: {refusal}"
    return f"Took {of}{why}."
