"""Charges follow pods: the use case that the worker of deployments repeats for each of them."""

from __future__ import annotations

import asyncio

from dovetail.intents.deployment import DeploymentRecord
from dovetail.ledger import Ledger, Transaction
from dovetail.ledger.intents import charges
from dovetail.ledger.intents.charges import FollowedCharges


async def follow(ledger: Ledger, record: DeploymentRecord) -> list[FollowedCharges]:
    """Charge the pods of a deployment where they run; for each of its placements what was found."""

    def all_of_it(tx: Transaction) -> list[FollowedCharges]:
        return [charges.follow(tx, record.id, each) for each in record.document.placements]

    return await asyncio.wrap_future(ledger.write(all_of_it))
