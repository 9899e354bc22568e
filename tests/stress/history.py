"""What a client knows of its consumers: what was acknowledged, and what is in doubt.

A consumer belongs to one client, so its history is a sequence. A write without an answer leaves
a Doubt: all of its consumers are as before, or all are as after, never a mixture.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

Allocations = dict[str, dict[str, int]]
"""provider uuid -> resource class -> amount"""


@dataclass(frozen=True, slots=True)
class Holding:
    """What a consumer has, and how often that was written since it had nothing."""

    allocations: Allocations
    generation: int


State = dict[str, Holding | None]
"""consumer -> what it holds; None: nothing, hence the consumer is not known to the server"""


@dataclass(slots=True)
class Doubt:
    before: State
    after: State
    since: float = 0.0
    looks: int = 0

    def explains(self, state: State) -> bool:
        return state in (self.before, self.after)


@dataclass(slots=True)
class History:
    held: dict[str, Holding] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    doubts: list[Doubt] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def expected(self, consumers: list[str]) -> State:
        return {consumer: self.held.get(consumer) for consumer in consumers}

    def settle(self, after: State) -> None:
        """The write that led to this state was acknowledged, or seen to have happened."""
        for consumer, holding in after.items():
            if holding is None:
                self.held.pop(consumer, None)
                self.released.add(consumer)
            else:
                self.held[consumer] = holding

    def doubt(self, after: State, now: float) -> Doubt:
        """Nobody touches these consumers again until it is known what became of them."""
        doubt = Doubt(self.expected(list(after)), after, since=now)
        for consumer in after:
            self.held.pop(consumer, None)
        self.doubts.append(doubt)
        return doubt


def merged(histories: list[History]) -> History:
    whole = History()
    for history in histories:
        whole.held |= history.held
        whole.released |= history.released
        whole.doubts += history.doubts
        whole.counts += history.counts
        whole.faults += history.faults
    return whole
