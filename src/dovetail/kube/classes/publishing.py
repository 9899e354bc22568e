"""Publishing: has the ledger say what the catalogue says, name by name; for the class controller.

Level-triggered: a name in the work queue means that what it stands for may have changed, and what
it stands for now is told, unless it was told before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

import structlog

from dovetail.core.device import Device
from dovetail.core.errors import DovetailError
from dovetail.kube.classes.sources import devices_of
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.ledger import LedgerBusy
from dovetail.podfit.objects import Node, ResourceSlice
from dovetail.service.device_claims import DeviceLedger

LOG = structlog.get_logger("dovetail.kube.scheduler")

T = TypeVar("T")

WORKERS = 8
"""Tell what changes at a time; the ledger commits together what comes together."""
AT_FIRST = 32
"""Tell everything at a time, when that is all there is to do."""


class Publisher(Generic[T]):
    """Of `things` by name, those that changed; between `start` and `stop`, a leader's term."""

    def __init__(
        self,
        name: str,
        things: Mapping[str, T],
        changed: WorkQueue,
        *,
        put: Callable[[str, T], Awaitable[None]],
        drop: Callable[[str], Awaitable[None]],
    ) -> None:
        self._name = name
        self._things = things
        self._put, self._drop = put, drop
        self._queue = changed
        self._told: dict[str, T | None] = {}
        self._on = False

    async def start(self) -> None:
        """Tell everything, and from now on what changes. Raises LedgerBusy.

        What the ledger refuses is tried again later: others need not wait for it.
        """
        self._on = True
        self._told.clear()
        left = list(self._things)

        async def tell_some() -> None:
            while left:
                name = left.pop()
                try:
                    await self._tell(name)
                except LedgerBusy:
                    raise
                except DovetailError as error:
                    LOG.warning(f"cannot {self._name}", of=name, error=str(error))
                    self._queue.add(name)

        await asyncio.gather(*(tell_some() for _ in range(AT_FIRST)))

    def stop(self) -> None:
        self._on = False

    def again(self, name: str) -> None:
        """The ledger does not seem to know."""
        self._told.pop(name, None)
        self._queue.add(name)

    async def run(self) -> None:
        try:
            await self._queue.run(self._tell, WORKERS)
        finally:
            self._queue.close()

    async def _tell(self, name: str) -> None:
        thing = self._things.get(name)
        if not self._on or (name in self._told and self._told[name] == thing):
            return
        if thing is None:
            await self._drop(name)
        else:
            await self._put(name, thing)
        self._told[name] = thing
        if self._things.get(name) != thing:
            # It changed meanwhile, and another worker may have told that before this was written.
            self._queue.add(name)


def publishable_devices(
    ledger: DeviceLedger, node: Node, slices: Sequence[ResourceSlice]
) -> tuple[Device, ...]:
    """The devices of a node. Raises Malformed, also where the ledger could not have them: what it
    does not have cannot be claimed, and pods would be sent there in vain."""
    found = devices_of(node, slices)
    ledger.refuse_unfit(node.metadata.name, found)
    return found
