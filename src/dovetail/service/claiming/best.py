"""Claim of the best place, for POST /dovetail/v1/claims: search, take a candidate, or refuse.

    1 search the fleet without what claims under way in this process are about to take
    2 take the first candidate; where somebody else was faster, the next of those that were found
    3 if nothing is found: refuse if nothing fits what is written in the ledger either; else the
      room is only just being taken, and whoever takes it may fail: wait until one claim has ended
    4 begin anew, until the budget of time is over

Each round ends with an answer, a candidate lost to somebody else, or a claim of somebody else that
came to its end; a refusal is true at the moment in which the ledger was last looked at.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from dovetail.aio.backoff import full_jitter
from dovetail.core.claim import Claim
from dovetail.core.request import Request
from dovetail.engine import Search
from dovetail.engine.combine.round_robin import Block
from dovetail.ledger import Ledger, Transaction, claims
from dovetail.service import asking
from dovetail.service.claiming.under_way import Place
from dovetail.service.claims import TAKEN_MEANWHILE, NothingFits, Outrun, counting, write
from dovetail.service.decisions import SHOWN_CANDIDATES, CandidateAnswer, answer_of, decision_of
from dovetail.service.snapshots import SnapshotKeeper

FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 0.001, 0.05
"""After a round in which others were faster with every candidate, at the most."""

MakeClaim = Callable[[dict[str, dict[str, int]]], Claim]
"""From the allocations chosen."""


class BestClaim(msgspec.Struct, frozen=True):
    """The place that was claimed, and the number of the decision on record."""

    allocations: dict[str, dict[str, int]]
    mappings: dict[str, frozenset[str]]
    names: Mapping[str, str]
    """Of the providers, by uuid, as they were when the claim was written."""
    decision: int


class WithClaim(msgspec.Struct, frozen=True):
    """What is done in the transaction of a claim, for who may have made the same one before."""

    before: Callable[[Transaction], None]
    """Raises what ends the claim, if it was made before."""
    after: Callable[[Transaction, BestClaim], None]


class Offers(msgspec.Struct, frozen=True):
    """Candidates as they were found, to be tried one after the other while the snapshot goes on."""

    answer: CandidateAnswer
    provider_ids: Sequence[Sequence[int]]
    """By candidate the provider of each slot."""
    class_ids: Mapping[str, int]
    suffixes: Sequence[str]
    """Of the group of each slot."""

    def amounts(self, position: int) -> dict[Place, int]:
        found: dict[Place, int] = {}
        for provider_id, share in zip(self.provider_ids[position], self.answer.shares, strict=True):
            for name, amount in share.items():
                place = provider_id, self.class_ids[name]
                found[place] = found.get(place, 0) + amount
        return found

    def mappings(self, position: int) -> dict[str, frozenset[str]]:
        """Provider uuids by suffix of the group they serve."""
        found: dict[str, set[str]] = {}
        for uuid, suffix in zip(self.answer.providers[position], self.suffixes, strict=True):
            found.setdefault(suffix, set()).add(uuid.decode())
        return {suffix: frozenset(uuids) for suffix, uuids in found.items()}


async def claim_best(
    ledger: Ledger,
    keeper: SnapshotKeeper,
    request: Request,
    *,
    query: str,
    claim: MakeClaim,
    budget_seconds: float,
    with_claim: WithClaim | None = None,
) -> BestClaim:
    """Find the best place and claim it; where somebody else was faster, the next best one.

    Raises NothingFits; Outrun if others were faster until the budget of time was over;
    StaleGeneration if the consumer holds something already; what `asking.find` raises.
    """
    if request.limit is None:
        request = replace(request, limit=SHOWN_CANDIDATES)
    searching = BestSearch(keeper, request, query, budget_seconds)
    lost = ""
    with counting():
        for failures in searching.rounds():
            offers = await searching.offers()
            if offers is None:
                await searching.refuse_or_wait()
                continue
            for position in range(len(offers.provider_ids)):
                amounts = offers.amounts(position)
                if not keeper.has_room(amounts):
                    continue
                try:
                    with keeper.claiming(amounts):
                        return await take(ledger, offers, position, claim, with_claim)
                except TAKEN_MEANWHILE as error:
                    lost = str(error)
                    keeper.claims_under_way.meet_others()
            await asyncio.sleep(full_jitter(failures + 1, FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS))
        raise Outrun(f"others were faster for {budget_seconds:g} seconds: {lost or 'no room left'}")


async def take(
    ledger: Ledger,
    offers: Offers,
    position: int,
    claim: MakeClaim,
    with_claim: WithClaim | None,
) -> BestClaim:
    allocations, mappings = offers.answer.allocations(position), offers.mappings(position)
    wanted = claim(allocations)

    def claim_and_record(tx: Transaction) -> BestClaim:
        if with_claim is not None:
            with_claim.before(tx)
        document = decision_of(offers.answer, position).encoded()
        taken = claims.take(tx, wanted, document)
        assert taken.decision is not None
        best = BestClaim(allocations, mappings, taken.names, taken.decision)
        if with_claim is not None:
            with_claim.after(tx, best)
        return best

    return await write(ledger, claim_and_record)


class BestSearch:
    """The rounds of one claim: what is searched, and when to end."""

    def __init__(
        self, keeper: SnapshotKeeper, request: Request, query: str, budget_seconds: float
    ) -> None:
        self._keeper, self._request, self._query = keeper, request, query
        self._seconds = budget_seconds
        self._end = time.monotonic() + budget_seconds
        self._ended = 0
        self._is_alone = True

    def rounds(self) -> Iterator[int]:
        """Counts them from 0 until the time is over."""
        count = 0
        while not count or time.monotonic() < self._end:
            yield count
            count += 1

    async def offers(self) -> Offers | None:
        """What fits beside the claims under way; None if nothing does."""
        under_way = self._keeper.claims_under_way
        snapshot = await self._keeper.fresh_for_claims()
        self._ended, self._is_alone = under_way.ended, not under_way.taken
        search, found = await asking.find_for(
            self._keeper, snapshot, self._request, self._seconds, order=under_way.order
        )
        return offers_of(self._query, search, found) if len(found) else None

    async def refuse_or_wait(self) -> None:
        """Return when it is worth while to look again. Raises NothingFits."""
        if self._is_alone:
            raise NothingFits("nothing fits")
        _, found = await asking.find(self._keeper, replace(self._request, limit=1), self._seconds)
        if not len(found):
            raise NothingFits("nothing fits")
        left = max(self._end - time.monotonic(), 0.0)
        try:
            await asyncio.wait_for(self._keeper.claims_under_way.end_after(self._ended), left)
        except TimeoutError:
            return


def offers_of(query: str, search: Search, found: Block) -> Offers:
    shown = found[:SHOWN_CANDIDATES]
    return Offers(
        answer_of(query, search, found, asking.scores_of(search)),
        search.snapshot.provider_id.values[shown].tolist(),
        search.snapshot.class_ids,
        [slot.group.suffix for slot in search.slots],
    )
