"""Status writer: the numbers of device classes in the status of each ResourceClass, for users.

The class controller runs it while leading. One pod changes the numbers of every class that selects
its device, so nothing is written per event: once a second every class is looked at, and written if
it says something else. A look costs some microseconds per class. A write names the version it was
made for, so that a leader that lost its lease does not overwrite its successor's numbers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from dovetail.kube.api.port import ApiConflict, ApiError, ApiNotFound, ApiUnreachable, KubeApi
from dovetail.kube.classes.catalogue import ClassReport
from dovetail.kube.runtime.conditions import as_documents, timestamp, with_condition
from dovetail.podfit.objects import ResourceClass

LOG = structlog.get_logger()

TOGETHER = 16
"""Writes under way at a time."""

VALID = "Valid"


class ClassStatusWriter:
    def __init__(
        self,
        api: KubeApi,
        classes: Mapping[str, ResourceClass],
        report: Callable[[str], ClassReport],
        interval: float,
    ) -> None:
        """`interval`: seconds between two writes of the same class."""
        self._api = api
        self._classes = classes
        self._report = report
        self._interval = interval
        self._slots = asyncio.Semaphore(TOGETHER)

    async def run(self) -> None:
        """As long as this is the one to write."""
        while True:
            await self.write()
            await asyncio.sleep(self._interval)

    async def write(self) -> None:
        """Every class whose status is another than it should be."""
        now = timestamp()
        todo = [
            (seen, status)
            for name, seen in self._classes.items()
            if (status := status_of(seen, self._report(name), now)) is not None
        ]
        await asyncio.gather(*(self._write(seen, status) for seen, status in todo))

    async def _write(self, seen: ResourceClass, status: dict[str, Any]) -> None:
        name = seen.metadata.name
        body = {"metadata": {"resourceVersion": seen.metadata.resource_version}, "status": status}
        async with self._slots:
            try:
                await self._api.merge(ResourceClass, name, body, sub="status")
            except (ApiConflict, ApiNotFound):
                # Newer than what is known here, or gone: that will be known at the next look.
                pass
            except (ApiError, ApiUnreachable) as error:
                LOG.warning("status of resource class not written", name=name, error=str(error))


def status_of(seen: ResourceClass, report: ClassReport, now: str) -> dict[str, Any] | None:
    """What to write; None if it is written already."""
    numbers, problems = report
    before, generation = seen.status, seen.metadata.generation
    conditions = with_condition(
        before.conditions,
        VALID,
        not problems,
        "Unusable" if problems else "Usable",
        "; ".join(problems) or "pods can ask for it",
        generation=generation,
        now=now,
    )
    said = (before.allocatable, before.requested, before.observed_generation, before.conditions)
    if said == (numbers.allocatable, numbers.requested, generation, conditions):
        return None
    return {
        "observedGeneration": generation,
        "allocatable": numbers.allocatable,
        "requested": numbers.requested,
        "available": numbers.allocatable - numbers.requested,
        "conditions": as_documents(conditions),
    }
