"""Charges follow pods: the use case that the worker of deployments repeats for each of them.

It looks whether the clusters of a deployment changed at all since it last followed: most do not
from one look to the next, and a transaction for each deployment would cost more than all others.
"""

from __future__ import annotations

from dovetail.aio.thread_results import result_of
from dovetail.intents.deployment import DeploymentRecord
from dovetail.ledger import Ledger, Transaction
from dovetail.ledger.intents import charges
from dovetail.ledger.intents.charges import FollowedCharges
from dovetail.service.intents.fleet import FleetKeeper

MOST_REMEMBERED = 10_000
"""Deployments whose clusters are known as they were: of others it is looked up again."""


class ChargeFollower:
    """Used on the event loop only."""

    def __init__(self, ledger: Ledger, fleet: FleetKeeper) -> None:
        self._ledger, self._fleet = ledger, fleet
        self._seen: dict[str, object] = {}

    async def follow(self, record: DeploymentRecord) -> None:
        """Charge the pods of a deployment where they run, if anything may have moved."""
        fleet = await self._fleet.fresh()
        names = sorted({each.cluster for each in record.document.placements})
        versions = [fleet.clusters[name].version for name in names if name in fleet.clusters]
        now = (record.revision, versions)
        if self._seen.pop(record.id, None) != now:
            await follow(self._ledger, record)
        self._seen[record.id] = now
        if len(self._seen) > MOST_REMEMBERED:
            del self._seen[next(iter(self._seen))]


async def follow(ledger: Ledger, record: DeploymentRecord) -> list[FollowedCharges]:
    """Charge the pods of a deployment where they run; for each of its placements what was found."""

    def all_of_it(tx: Transaction) -> list[FollowedCharges]:
        return [charges.follow(tx, record.id, each) for each in record.document.placements]

    return await result_of(ledger.write(all_of_it))
