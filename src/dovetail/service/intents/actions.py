"""Actions on groups, as the HTTP edge asks for them: `IntentActions`, put together.

Plans are made without holding anything; what was planned is claimed in one transaction, and where
somebody else was faster the plan is made again on what is left. So two groups are never promised
the same hardware, however many servers there are, and whoever is refused is refused for good
reasons. A claim of which nothing is ever sent expires.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec

from dovetail.aio.backoff import full_jitter
from dovetail.aio.thread_results import result_of
from dovetail.core.errors import DovetailError, Malformed
from dovetail.intents.deployment import DeploymentRecord, DeploymentState
from dovetail.ledger import Ledger, Transaction
from dovetail.ledger import claims as ledger_claims
from dovetail.ledger.database.protocol import Operation, T
from dovetail.ledger.intents.charges import NodeGone
from dovetail.ledger.intents.node_names import consumer_uuid
from dovetail.service import claims
from dovetail.service.claims import ConsumerDecisions
from dovetail.service.decisions import ClaimDecision, RankedOption, outcome_of
from dovetail.service.intents.deploying import transitions
from dovetail.service.intents.deploying.transitions import PlannedDeployment
from dovetail.service.intents.ports import Answer, GroupPath, Infeasible, StatusQuery
from dovetail.service.intents.settings import IntentSettings

MOST_ATTEMPTS = 40
"""Each fails only because another one succeeded."""
TAKEN_MEANWHILE = (*claims.TAKEN_MEANWHILE, NodeGone)
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.01, 0.5


TakeDeployment = Callable[[Transaction, DeploymentRecord, PlannedDeployment], DeploymentRecord]
"""Claims, records and puts into the outbox, all or nothing."""


class GroupPlanner(Protocol):
    async def planned(
        self, record: DeploymentRecord, *, may_replace: bool = False
    ) -> PlannedDeployment:
        """What the deployment is to be. Raises NotFound, Malformed and Infeasible."""
        ...

    async def recorded(self, record: DeploymentRecord) -> None:
        """What was planned is claimed."""
        ...

    async def discarded(self, planned: PlannedDeployment) -> None:
        """Others were faster."""
        ...

    async def ended(self, record: DeploymentRecord) -> None:
        """The deployment is about to be removed."""
        ...

    async def plan(self, group: GroupPath) -> Answer: ...

    async def explain(self, group: GroupPath, *, app: str, cluster: str | None) -> Answer: ...


class StatusTeller(Protocol):
    async def status(self, group: GroupPath, asked: StatusQuery) -> Answer: ...


class GroupActions:
    """`IntentActions`."""

    def __init__(
        self,
        ledger: Ledger,
        planner: GroupPlanner,
        teller: StatusTeller,
        settings: IntentSettings,
        wake: Callable[[], None],
    ) -> None:
        """`wake` has a worker of this process look at once."""
        self._ledger, self._planner, self._teller = ledger, planner, teller
        self._settings, self._wake = settings, wake

    async def approve(self, group: GroupPath) -> Answer:
        return answer_of(await self._write(lambda tx: transitions.approve(tx, group)))

    async def terminate(self, group: GroupPath) -> Answer:
        return await self._ended(lambda tx: transitions.terminate(tx, group))

    async def stop(self, group: GroupPath) -> Answer:
        return await self._ended(lambda tx: transitions.stop(tx, group))

    async def instantiate(self, group: GroupPath) -> Answer:
        await self._write(lambda tx: transitions.expire(tx, self._settings.hold_seconds))
        return await self._claimed(
            lambda tx: transitions.to_instantiate(tx, group),
            transitions.instantiate,
            may_replace=False,
        )

    async def update(self, group: GroupPath, *, replace: bool) -> Answer:
        return await self._claimed(
            lambda tx: transitions.to_update(tx, group), transitions.update, may_replace=replace
        )

    async def rollback(self, group: GroupPath, *, revision: int) -> Answer:
        """Earlier revisions are not kept: documents are, and update brings them about."""
        record = await self._read(lambda tx: transitions.to_update(tx, group))
        if revision == record.revision:
            return answer_of(record)
        raise Malformed(
            f"revision {revision} is not kept: put the documents as they were, and update"
        )

    async def status(self, group: GroupPath, asked: StatusQuery) -> Answer:
        return await self._teller.status(group, asked)

    async def plan(self, group: GroupPath) -> Answer:
        return await self._planner.plan(group)

    async def explain(self, group: GroupPath, *, app: str, cluster: str | None) -> Answer:
        return await self._planner.explain(group, app=app, cluster=cluster)

    async def _claimed(
        self,
        find: Operation[DeploymentRecord],
        take: TakeDeployment,
        *,
        may_replace: bool,
    ) -> Answer:
        """Plan and claim, again and again while others are faster."""
        refusal = ""
        with claims.counting():
            for attempt in range(MOST_ATTEMPTS):
                pause = full_jitter(attempt, FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
                await asyncio.sleep(pause)
                wanted = await self._read(find)
                planned = await self._planner.planned(wanted, may_replace=may_replace)
                claim = DeploymentClaim(wanted, planned, take)
                try:
                    await claims.take_recorded(self._ledger, claim.take, claim.decide)
                except DovetailError as error:
                    await self._planner.discarded(planned)
                    if not isinstance(error, TAKEN_MEANWHILE):
                        raise
                    refusal = str(error)
                else:
                    assert claim.taken is not None
                    self._wake()
                    await self._planner.recorded(claim.taken)
                    return answer_of(claim.taken)
            raise Infeasible(f"others were faster every time: {refusal}")

    async def _ended(self, operation: Operation[DeploymentRecord]) -> Answer:
        record = await self._write(operation)
        self._wake()
        await self._planner.ended(record)
        return answer_of(record)

    async def _read(self, operation: Operation[T]) -> T:
        return await result_of(self._ledger.read(operation))

    async def _write(self, operation: Operation[T]) -> T:
        return await result_of(self._ledger.write(operation))


def answer_of(record: DeploymentRecord) -> Answer:
    """What became of an action."""
    found = {
        "deployment": record.id,
        "revision": record.revision,
        "state": str(record.state),
        "apps": {},
    }
    apps: dict[str, list[dict[str, object]]] = {}
    for each in record.document.placements:
        apps.setdefault(each.app, []).append({"cluster": each.cluster, "score": each.score})
    if record.state is not DeploymentState.APPROVED:
        found["apps"] = apps
    return found


class DeploymentClaim(msgspec.Struct):
    """One attempt to take what was planned, and what is to be written down of it."""

    wanted: DeploymentRecord
    planned: PlannedDeployment
    taking: TakeDeployment
    taken: DeploymentRecord | None = None

    def take(self, tx: Transaction) -> None:
        self.taken = self.taking(tx, self.wanted, self.planned)

    def decide(self, tx: Transaction, refusal: str | None) -> ConsumerDecisions:
        """Of each app on each cluster."""
        for placed in self.planned.placements:
            what = f"{placed.app} on {placed.cluster}"
            words = (
                f"Took {what}." if refusal is None else f"Asked for {what}, and refused: {refusal}"
            )
            consumer = consumer_uuid(self.planned.id, placed.app, placed.cluster)
            about = f"deployment={self.planned.id}&app={placed.app}&cluster={placed.cluster}"
            yield (
                consumer,
                ClaimDecision(
                    query=about,
                    outcome=outcome_of(refusal),
                    candidates=1,
                    chosen=RankedOption(1, allocations_of(tx, consumer)),
                    words=words,
                ),
            )


def allocations_of(tx: Transaction, consumer: str) -> dict[str, dict[str, int]]:
    """What it holds, by provider."""
    holding = ledger_claims.of_consumer(tx, consumer)
    found: dict[str, dict[str, int]] = {}
    for each in holding.held if holding is not None else ():
        found.setdefault(each.provider_uuid, {})[each.class_name] = each.amount
    return found
