"""Finds the best place for a request and claims it, in one go."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from dovetail.core.claim import Claim
from dovetail.core.errors import DovetailError, Refused
from dovetail.core.request import Request
from dovetail.engine import Candidate, Search
from dovetail.engine.combine.round_robin import Block
from dovetail.ledger import Ledger, Transaction, claims, decisions
from dovetail.service import asking
from dovetail.service.decisions import SHOWN, answer_of, decided
from dovetail.service.snapshots import SnapshotKeeper
from dovetail.telemetry.phases import phase

ATTEMPTS = 8
"""Others may be faster; after that many times somebody should look."""
TAKEN = (Refused, claims.UnknownProvider)
"""How a claim fails if the place was taken, or taken away, since it was found."""

MakeClaim = Callable[[dict[str, dict[str, int]]], Claim]
"""From the allocations chosen."""


class Outrun(DovetailError):
    """Others were faster every time."""


class Placed(msgspec.Struct, frozen=True):
    allocations: dict[str, dict[str, int]]
    mappings: dict[str, frozenset[str]]
    decision: int


async def place(
    ledger: Ledger,
    keeper: SnapshotKeeper,
    request: Request,
    *,
    query: str,
    claim: MakeClaim,
    budget_seconds: float,
) -> Placed | None:
    """None if nothing fits. Where somebody else was faster, the next best place is tried; raises
    Outrun if that never ends, StaleGeneration if the consumer holds something already."""
    if request.limit is None:
        request = replace(request, limit=SHOWN)
    last = ""
    for _ in range(ATTEMPTS):
        search, found = await asking.find(keeper, request, budget_seconds)
        if not len(found):
            return None
        try:
            return await claim_first(ledger, search, found, query, claim)
        except TAKEN as error:
            last = str(error)
    raise Outrun(f"others were faster every time: {last}")


async def claim_first(
    ledger: Ledger, search: Search, found: Block, query: str, claim: MakeClaim
) -> Placed:
    best = Candidate(search, tuple(found[0].tolist()))
    allocations, mappings = best.allocations, best.mappings
    answer = answer_of(query, search, found, asking.scores_of(search))
    decision = decided(answer, 0).encoded()
    wanted = claim(allocations)

    def write(tx: Transaction) -> int:
        claims.replace(tx, [wanted])
        return decisions.record(tx, wanted.consumer, decision)

    with phase("write"):
        number = await asyncio.wrap_future(ledger.write(write))
    return Placed(allocations, mappings, number)
