"""Leader election by a Lease, and work that is done only while leading; controllers call both.

`Election` is one candidate: the one that holds the Lease and keeps renewing it leads. `Leader` is
what the parts of a controller see of it: whether this replica leads, and `run_while_leading`.

No two clocks are compared. A candidate takes a lease over only after it has seen it unchanged
for as long as it lasts. A leader stops leading by itself when that time, less a margin, has passed
since it last *began* a renewal that succeeded. Others can see a renewal only after it began, so the
leader has stopped before anybody may take over, whatever the API does: `leading` is asked of the
clock, not of a timer that may be late.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from dovetail.aio.supervise import run_together
from dovetail.kube.api.port import ApiConflict, ApiError, ApiNotFound, ApiUnreachable, KubeApi
from dovetail.kube.runtime.metrics import LEADING
from dovetail.podfit.objects import Lease, LeaseSpec

LOG = structlog.get_logger("dovetail.kube.election")

Handler = Callable[[bool], None]
JITTER = 0.2
NEVER = -math.inf


class LeaseTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds; the usual ones of Kubernetes."""

    lease: float = 15.0
    """How long others wait for a sign of the leader."""
    renew: float = 10.0
    """How long a leader leads without having renewed."""
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease > self.renew > self.retry * (1 + JITTER) > 0:
            raise ValueError(
                f"lease {self.lease} s must be longer than renew {self.renew} s, and that longer"
                f" than retry {self.retry} s and a fifth of it"
            )

    @classmethod
    def in_proportion(cls, lease: float) -> LeaseTiming:
        """In the proportions that Kubernetes' own components have."""
        return cls(lease=lease, renew=lease * 2 / 3, retry=lease * 2 / 15)


def clock() -> float:
    """Seconds that only go forward, and also while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Election:
    """One candidate. Its `identity` is its own: another process must never use the same."""

    def __init__(
        self,
        api: KubeApi,
        namespace: str,
        name: str,
        identity: str,
        *,
        timing: LeaseTiming | None = None,
        clock: Callable[[], float] = clock,
    ) -> None:
        self._api = api
        self._namespace, self._name = namespace, name
        self.identity = identity
        self._timing = timing or LeaseTiming()
        self._clock = clock
        self._until = NEVER
        self._told_leading = False
        self._handlers: list[Handler] = []
        self._version = ""
        """Of the lease as we last knew it, while we lead; else it is read anew."""
        self._record = LeaseSpec()
        self._seen = NEVER
        self._timer: asyncio.TimerHandle | None = None

    @property
    def leading(self) -> bool:
        """Ask before each thing that only a leader may do."""
        return self._clock() < self._until

    @property
    def leader(self) -> str:
        """Who holds the lease as far as we know, or ""."""
        return self._record.holder_identity or ""

    def on(self, handler: Handler) -> None:
        """Called with True when we begin to lead, with False when we no longer do."""
        self._handlers.append(handler)

    async def run(self) -> None:
        """Stand for election until cancelled; then give the lease back, if it is ours.

        Whoever cancels this has ended the leader's work before.
        """
        try:
            while True:
                await self.step()
                await asyncio.sleep(self._timing.retry * (1 + JITTER * random.random()))
        finally:
            held = self.leading
            self._lead(NEVER)
            if held:
                await self._release()

    async def step(self) -> None:
        """Take or renew the lease, if that is possible."""
        began = self._clock()
        try:
            # Half: a call that hangs leaves time for another before it is too late.
            async with asyncio.timeout(self._timing.renew / 2):
                try:
                    mine = await self._take_lease()
                except ApiConflict:
                    # Somebody was faster, or a renewal of ours was done and not answered.
                    self._version = ""
                    mine = await self._take_lease()
        except (ApiError, ApiUnreachable, TimeoutError) as error:
            self._version = ""
            LOG.warning("lease not reached", lease=self._name, error=repr(error))
            self._lead(self._until)
        else:
            self._lead(began + self._timing.renew if mine else NEVER)

    async def _take_lease(self) -> bool:
        """Whether the lease is ours now."""
        if not (self.leading and self._version):
            # A leader need not look: if anything happened to its lease, the renewal is refused.
            await self._look()
        if self.leader != self.identity and self._is_held():
            return False
        renewed = {"metadata": {"resourceVersion": self._version}, "spec": self._renewed()}
        self._observe(await self._api.merge(Lease, self._name, renewed, namespace=self._namespace))
        return True

    async def _look(self) -> None:
        try:
            lease = await self._api.get(Lease, self._name, self._namespace)
        except ApiNotFound:
            if self.leader != self.identity and self._is_held():
                # Whoever deleted it did not tell its holder, which may still lead.
                return
            made = {"metadata": {"name": self._name}, "spec": self._renewed()}
            await self._api.create(Lease, made, namespace=self._namespace)
            lease = await self._api.get(Lease, self._name, self._namespace)
        self._observe(lease)

    def _observe(self, lease: Lease) -> None:
        self._version = lease.metadata.resource_version
        if lease.spec != self._record:
            self._record = lease.spec
            self._seen = self._clock()

    def _is_held(self) -> bool:
        """Whether its holder may still lead, for all that we have seen ourselves."""
        lasts = self._record.lease_duration_seconds or self._timing.lease
        return bool(self.leader) and self._clock() < self._seen + lasts

    def _renewed(self) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._timing.lease),
            "renewTime": now,
        }
        if self.leader != self.identity:
            spec |= {
                "acquireTime": now,
                "leaseTransitions": (self._record.lease_transitions or 0) + 1,
            }
        return spec

    def _lead(self, until: float) -> None:
        """Lead until then; tell if that changes anything."""
        self._until = until
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.leading:
            left = until - self._clock()
            self._timer = asyncio.get_running_loop().call_later(left, self._lead, until)
        if self.leading != self._told_leading:
            self._told_leading = self.leading
            LEADING.labels(self._name).set(self._told_leading)
            LOG.info("leads" if self._told_leading else "leads no longer", lease=self._name)
            for handler in self._handlers:
                self._call(handler)

    def _call(self, handler: Handler) -> None:
        try:
            handler(self._told_leading)
        except Exception:
            LOG.exception("handler failed", lease=self._name)

    async def _release(self) -> None:
        """So that the next need not wait. If it fails, they wait."""
        try:
            async with asyncio.timeout(self._timing.retry):
                await self._look()
                if self.leader != self.identity:
                    return
                # A lease without a holder must last, too: for the shortest time there is.
                spec = {"holderIdentity": "", "leaseDurationSeconds": 1}
                body = {"metadata": {"resourceVersion": self._version}, "spec": spec}
                await self._api.merge(Lease, self._name, body, namespace=self._namespace)
        except (ApiError, ApiUnreachable, TimeoutError) as error:
            LOG.warning("lease not given back", lease=self._name, error=repr(error))


class Leader:
    """Whether this replica leads, for its parts. Without an election it always does."""

    def __init__(self, election: Election | None = None) -> None:
        self._election = election
        self._leads = election is None
        """As the election told last; in the order of its news, which the clock is ahead of."""
        self._changed = asyncio.Event()
        if election is not None:
            election.on(self._leadership_changed)

    @property
    def leading(self) -> bool:
        """Ask before each thing that only a leader may do."""
        return self._election is None or self._election.leading

    async def run(self) -> None:
        """Stand for election until cancelled; then give the lease back, if it is ours."""
        if self._election is None:
            await asyncio.Event().wait()
        else:
            await self._election.run()

    async def run_while_leading(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin the work with each term of this replica, and cancel it when the term ends.

        Until cancelled, or until the work fails. Work that ends is begun anew with the next term,
        and no term begins before the work of the last one has come to its end.
        """
        while True:
            await self._until(leads=True)
            await run_together(self._until(leads=False), self._term(work))

    async def _term(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        await work()
        await asyncio.Event().wait()

    async def _until(self, *, leads: bool) -> None:
        while self._leads is not leads:
            await self._changed.wait()

    def _leadership_changed(self, leads: bool) -> None:
        self._leads = leads
        self._changed.set()
        self._changed = asyncio.Event()
