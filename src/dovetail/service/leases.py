"""Ledger lease: work that is done by one process of all that share a ledger; the mirror calls it.

No two clocks are compared. A candidate takes a lease over only after it has seen it unchanged for
as long as it lasts. A holder stops by itself when that time, less a margin, has passed since it
last began a renewal that succeeded. What it writes is fenced besides: a transaction of one who does
not hold the lease any more fails as a whole (`fenced`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import structlog

from dovetail.aio.supervise import end
from dovetail.aio.thread_results import result_of
from dovetail.core.errors import DovetailError
from dovetail.ledger import Ledger, Transaction
from dovetail.ledger.database import leases
from dovetail.ledger.database.leases import LeaseLost, LeaseRow
from dovetail.ledger.database.protocol import Operation, T

LOG = structlog.get_logger("dovetail.leases")


class LeaseDurations(msgspec.Struct, frozen=True, kw_only=True):
    lease_seconds: float = 15.0
    """How long others wait for a sign of the holder."""
    hold_seconds: float = 10.0
    """How long a holder goes on without having renewed."""
    retry_seconds: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease_seconds > self.hold_seconds > self.retry_seconds > 0:
            raise ValueError("a lease lasts longer than it is held without a renewal")


class LedgerLease:
    """One candidate. Its `holder` is its own: another process must never use the same."""

    def __init__(
        self,
        ledger: Ledger,
        name: str,
        holder: str,
        durations: LeaseDurations | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ledger = ledger
        self.name, self.holder = name, holder
        self._durations = durations or LeaseDurations()
        self._clock = clock
        self._held_from = float("-inf")
        """When the last renewal that succeeded began."""
        self._until = 0
        self._seen: tuple[LeaseRow | None, float] = (None, clock())
        """The row as it was last seen to change, and when."""

    @property
    def is_held(self) -> bool:
        return self._clock() - self._held_from < self._durations.hold_seconds

    def fenced(self, operation: Operation[T]) -> Operation[T]:
        """The operation, if the lease is held when it is done; else LeaseLost."""

        def checked(tx: Transaction) -> T:
            leases.check(tx, self.name, self.holder)
            return operation(tx)

        return checked

    async def run_while_held(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have the work done whenever the lease is held, until cancelled; its failures are raised.

        When the lease is lost the work is cancelled, and waited for.
        """
        try:
            while True:
                await self._acquire()
                LOG.info("lease taken", lease=self.name, holder=self.holder)
                await self._do(work)
                LOG.warning("lease lost", lease=self.name, holder=self.holder)
        finally:
            await self._give_back()

    async def _do(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        doing = asyncio.create_task(work())
        holding = asyncio.create_task(self._hold())
        both = (doing, holding)
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await end(both)
        if not doing.cancelled():
            # Whoever lost the lease in the middle of it has not failed.
            error = doing.exception()
            if error is not None and not isinstance(error, LeaseLost):
                raise error

    async def _acquire(self) -> None:
        while True:
            if await self._try():
                return
            await asyncio.sleep(self._durations.retry_seconds)

    async def _hold(self) -> None:
        """Renew until the lease is lost."""
        while self.is_held:
            await asyncio.sleep(self._durations.retry_seconds)
            await self._try()

    async def _try(self) -> bool:
        """Take the lease or renew it; whether it is held by us now."""
        began = self._clock()
        try:
            is_taken = await result_of(self._ledger.write(self._take))
        except DovetailError as error:
            LOG.warning("lease not renewed", lease=self.name, error=str(error))
            return self.is_held
        self._held_from = began if is_taken else float("-inf")
        return is_taken

    def _take(self, tx: Transaction) -> bool:
        now = leases.find(tx, self.name)
        row, since = self._seen
        if now != row:
            self._seen = row, since = now, self._clock()
        is_expired = self._clock() - since >= self._durations.lease_seconds
        # Always another one, however clocks are set: by the change others see the holder.
        until = int((time.time() + self._durations.lease_seconds) * 1000)
        self._until = max(self._until + 1, until)
        wanted = LeaseRow(self.holder, self._until)
        return leases.take(tx, self.name, wanted, row if is_expired else None)

    async def _give_back(self) -> None:
        self._held_from = float("-inf")
        try:
            await asyncio.shield(
                result_of(self._ledger.write(lambda tx: leases.release(tx, self.name, self.holder)))
            )
        except DovetailError as error:
            LOG.warning("lease not given back", lease=self.name, error=str(error))
