"""A run of many cases: worlds are built in both servers, asked about, and taken down again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.differential import forests, shrinking
from tests.differential.comparison import alike
from tests.differential.judging import Verdict, judge
from tests.differential.oracle import Oracle
from tests.differential.query import Query
from tests.differential.questions import Questioner
from tests.differential.wire import Call, Pair
from tests.differential.world import World

PER_WORLD = 40
MOST_SHRUNK = 3
"""Mismatches made small; each takes a minute or two."""


class NotAlike(Exception):
    """The two servers answered a write of the loading differently."""


@dataclass(slots=True)
class Mismatch:
    seed: str
    world: World
    question: Query | Call | None
    """None if the servers differ while the world is loaded."""
    verdict: Verdict

    def __str__(self) -> str:
        call = self.question.call() if isinstance(self.question, Query) else self.question
        lines = [f"world {self.seed}: {self.verdict.fault}", f"  {call or 'loading'}"]
        lines += [f"  {provider}" for provider in self.world.providers]
        lines += [f"  {consumer}" for consumer in self.world.consumers]
        for side, answer in zip(
            ("reference", "dovetail"), self.verdict.answers or (), strict=False
        ):
            lines.append(f"  {side}: {answer.status} {answer.body}")
        return "\n".join(lines)


@dataclass(slots=True)
class Tally:
    cases: int = 0
    mismatches: list[Mismatch] = field(default_factory=list)
    defects: Counter[frozenset[int]] = field(default_factory=Counter)

    def __str__(self) -> str:
        named = {"+".join(map(str, sorted(it))): count for it, count in self.defects.items()}
        by_number = ", ".join(f"{name}: {named[name]}" for name in sorted(named))
        return (
            f"{self.cases} cases, {len(self.mismatches)} mismatches, "
            f"{self.defects.total()} differ by the reference's own defects ({by_number or 'none'})"
        )


class Campaign:
    """Compares the servers of a pair; `say` is told of what goes on."""

    def __init__(self, pair: Pair, say: Callable[[str], None]) -> None:
        self.pair, self.say = pair, say
        self.tally = Tally()

    def run(self, cases: int, seed: int) -> Tally:
        self._alike(forests.VOCABULARY)
        number = 0
        while self.tally.cases < cases:
            self._explore(f"{seed}/{number}", min(PER_WORLD, cases - self.tally.cases))
            number += 1
            self.say(f"world {seed}/{number - 1}: {self.tally}")
        for mismatch in self.tally.mismatches[:MOST_SHRUNK]:
            self._shrink(mismatch)
        return self.tally

    def _explore(self, seed: str, cases: int) -> None:
        rng = random.Random(seed)
        world = forests.grow(rng)
        try:
            oracle = self._build(world)
        except NotAlike as difference:
            self.tally.cases += cases
            self._note(Mismatch(seed, world, None, Verdict(str(difference))))
        else:
            questioner = Questioner(rng, oracle)
            for _ in range(cases):
                self._ask(seed, oracle, questioner.next())
        finally:
            self._raze(world)

    def _ask(self, seed: str, oracle: Oracle, question: Query | Call) -> None:
        verdict = judge(self.pair, oracle, question)
        self.tally.cases += 1
        if verdict.numbers:
            self.tally.defects[verdict.numbers] += 1
        if verdict.fault:
            self._note(Mismatch(seed, oracle.world, question, verdict))

    def _note(self, mismatch: Mismatch) -> None:
        self.tally.mismatches.append(mismatch)
        self.say(str(mismatch))

    def _build(self, world: World) -> Oracle:
        self._alike(world.building())
        claimed = self._alike(world.claiming())
        return Oracle(world, world.usage(claimed))

    def _raze(self, world: World) -> None:
        """Take the world down; whatever a refused claim never made is not there to delete."""
        self.pair.run(world.razing())

    def _alike(self, calls: Sequence[Call]) -> list[int]:
        """The statuses of the same writes in both servers, which must be the same."""
        answers = self.pair.run(calls)
        for call, (theirs, ours) in zip(calls, answers, strict=True):
            if not alike(theirs, ours):
                raise NotAlike(f"{call}\n  reference: {theirs}\n  dovetail: {ours}")
        return [theirs.status for theirs, _ in answers]

    def _shrink(self, mismatch: Mismatch) -> None:
        def still_wrong(case: shrinking.Case) -> bool:
            verdict = self._judge_alone(*case)
            if verdict.fault:
                mismatch.world, mismatch.question = case
                mismatch.verdict = verdict
            return bool(verdict.fault)

        if mismatch.question is not None:
            shrinking.shrink((mismatch.world, mismatch.question), still_wrong)

    def _judge_alone(self, world: World, question: Query | Call) -> Verdict:
        try:
            return judge(self.pair, self._build(world), question)
        except NotAlike:
            return Verdict()
        finally:
            self._raze(world)
