"""Status of groups: what the ledger and the fleet know of a deployment, for `actions`."""

from __future__ import annotations

from collections.abc import Callable
from time import time

from dovetail.aio.thread_results import result_of
from dovetail.intents.status import DeploymentView, StatusFilter, status_of
from dovetail.ledger import Ledger
from dovetail.service.intents.fleet import FleetKeeper
from dovetail.service.intents.known import charges_of, known_deployment
from dovetail.service.intents.ports import Answer, GroupPath, StatusQuery


class GroupStatus:
    def __init__(
        self, ledger: Ledger, fleet: FleetKeeper, clock: Callable[[], float] = time
    ) -> None:
        self._ledger, self._fleet, self._clock = ledger, fleet, clock

    async def status(self, group: GroupPath, asked: StatusQuery) -> Answer:
        """Raises NotFound."""
        known = await result_of(
            self._ledger.read(lambda tx: known_deployment(tx, group, asked.instance))
        )
        fleet = await self._fleet.fresh()
        view = DeploymentView(
            record=known.record,
            objects=known.objects,
            charges=charges_of(known.holdings, fleet),
            clusters=fleet.clusters,
            now=int(self._clock()),
            profile=known.profile,
        )
        wanted = StatusFilter(
            apps=asked.apps,
            clusters=asked.clusters,
            resources=asked.resources,
            is_summary=asked.output == "summary",
            is_detailed=asked.output == "detail",
        )
        return status_of(view, wanted)
