"""Class controller: publishes devices and classes in the ledger and writes the status of classes.

It reads the catalogue only and knows no scheduler. The daemon runs it beside the scheduler: `run`
on every replica, `lead` on the one that leads, for what a replica that lags behind knows may be
old. The scheduler waits for `published`, since what is not published cannot be claimed, and asks
to `republish` a node where the ledger seems to know less than the catalogue.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import structlog

from dovetail.aio.supervise import retry_until_done, run_together
from dovetail.core.errors import DovetailError
from dovetail.kube.api.port import KubeApi
from dovetail.kube.classes.catalogue import DeviceCatalogue
from dovetail.kube.classes.publishing import Publisher
from dovetail.kube.classes.status import ClassStatusWriter
from dovetail.kube.timings import Timings
from dovetail.podfit.objects import ResourceClass
from dovetail.service.device_claims import DeviceLedger

LOG = structlog.get_logger("dovetail.kube.scheduler")


class ClassController:
    def __init__(
        self,
        api: KubeApi,
        ledger: DeviceLedger,
        catalogue: DeviceCatalogue,
        classes: Mapping[str, ResourceClass],
        timings: Timings,
    ) -> None:
        """`classes` are the objects as the API server has them, whose status is written."""
        self._timings = timings
        self._devices = Publisher(
            "publish devices",
            catalogue.devices,
            catalogue.changed_nodes,
            put=ledger.publish,
            drop=ledger.withdraw,
        )
        self._classes = Publisher(
            "publish classes",
            catalogue.classes,
            catalogue.changed_classes,
            put=lambda _, each: ledger.put_class(each),
            drop=ledger.drop_class,
        )
        self._status = ClassStatusWriter(api, classes, catalogue.report, timings.class_status)
        self.published = asyncio.Event()
        """Set while this replica leads and the ledger has been told everything once."""

    def republish(self, node: str) -> None:
        """The ledger does not seem to know what devices the node has."""
        self._devices.again(node)

    async def run(self) -> None:
        """Work off what changed, until cancelled; it reaches the ledger only while leading."""
        await run_together(self._devices.run(), self._classes.run())

    async def lead(self) -> None:
        """For one term: publish everything, then what changes; keep the statuses true."""
        try:
            await retry_until_done(
                self._publish_all,
                on=DovetailError,
                pause_seconds=self._timings.housekeeping,
                log=lambda error: LOG.warning("not ready to lead", error=str(error)),
            )
            self.published.set()
            await self._status.run()
        finally:
            self.published.clear()
            self._devices.stop()
            self._classes.stop()

    async def _publish_all(self) -> None:
        await asyncio.gather(self._devices.start(), self._classes.start())
