"""Asks both servers the same questions in turn, and takes the median time of each.

Each query is first checked once: both sides must give the same number of candidates, and
without a limit the same candidates.
"""

import statistics
import time
from dataclasses import dataclass

from .client import Client, require
from .queries import QUERIES, Query, candidates
from .servers import Server

# The reference is so much slower that its median needs fewer samples for the same spread.
DOVETAIL_PER_ROUND = 6


@dataclass(frozen=True, slots=True)
class Comparison:
    query: str
    path: str
    candidates: int
    answer_bytes: int
    reference_ms: list[float]
    dovetail_ms: list[float]
    warnings: list[str]

    @property
    def reference_p50(self) -> float:
        return statistics.median(self.reference_ms)

    @property
    def dovetail_p50(self) -> float:
        return statistics.median(self.dovetail_ms)


def compare(reference: Server, dovetail: Server, rounds: int) -> list[Comparison]:
    sides = reference.client(), dovetail.client()
    results = [_compare(query, *sides, rounds) for query in QUERIES]
    for side in sides:
        side.close()
    return results


def sample(client: Client, path: str, times: int) -> list[float]:
    """Milliseconds of each request: sent, answered, and the body read to its end."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        status, answer = client.get(path)
        taken.append((time.perf_counter() - start) * 1000)
        require(status, answer, path)
    return taken


def _compare(query: Query, reference: Client, dovetail: Client, rounds: int) -> Comparison:
    theirs, ours = _answer(reference, query), _answer(dovetail, query)
    sample(dovetail, query.path, DOVETAIL_PER_ROUND)
    reference_ms: list[float] = []
    dovetail_ms: list[float] = []
    for _ in range(rounds):
        reference_ms += sample(reference, query.path, 1)
        dovetail_ms += sample(dovetail, query.path, DOVETAIL_PER_ROUND)
    return Comparison(
        query.name,
        query.path,
        candidates(ours).total(),
        len(ours),
        reference_ms,
        dovetail_ms,
        list(_differences(query, theirs, ours)),
    )


def _answer(client: Client, query: Query) -> bytes:
    status, answer = client.get(query.path)
    require(status, answer, query.path)
    return answer


def _differences(query: Query, theirs: bytes, ours: bytes) -> list[str]:
    expected, found = candidates(theirs), candidates(ours)
    if expected.total() != found.total():
        counts = f"placement {expected.total()} candidates, dovetail {found.total()}"
        return [f"{query.name}: {counts}"]
    # Which ones a limit keeps is each server's own choice.
    if query.limit is None and expected != found:
        return [f"{query.name}: {(expected - found).total()} candidates differ"]
    return []
