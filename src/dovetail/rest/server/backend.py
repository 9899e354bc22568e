"""The parts that handlers work with: ledger, snapshot, authenticator, policy and limits."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Literal, cast

import msgspec
import structlog

from dovetail.aio.background import Background
from dovetail.aio.backoff import Backoff
from dovetail.ledger import Ledger
from dovetail.rest.auth.hosts import AllowedHosts
from dovetail.rest.auth.identity import Authenticator
from dovetail.rest.auth.issuer_login import IssuerLogin
from dovetail.rest.auth.rate_limit import RateLimiter
from dovetail.rest.auth.sealing import Seal
from dovetail.rest.auth.settings import OidcSettings
from dovetail.rest.server.audit_log import AuditLog
from dovetail.rest.server.policy import RuleSet
from dovetail.rest.server.settings import RequestLimits
from dovetail.service.claiming.equals import Dealer
from dovetail.service.fleet_map.following import FleetFollowers
from dovetail.service.fleet_map.maps import FleetMaps
from dovetail.service.intents.ports import IntentActions, ObjectHook
from dovetail.service.intents.settings import IntentSettings
from dovetail.service.recent_answers import RecentAnswers
from dovetail.service.snapshots import SnapshotKeeper

LOG = structlog.get_logger("dovetail.rest")

Errand = Callable[[], Coroutine[Any, Any, None]]
"""Work beside requests, which goes on until it is cancelled."""


class ServerBackend(msgspec.Struct):
    ledger: Ledger
    keeper: SnapshotKeeper
    authenticator: Authenticator
    rules: RuleSet
    limits: RequestLimits = RequestLimits()
    allowed_hosts: AllowedHosts | None = None
    """Under which names requests are answered; None: under any, since callers are recognised."""
    cors_origin: str | None = None
    metrics: Literal["guarded", "public", "off"] = "guarded"
    rate_limiter: RateLimiter | None = None
    audit_log: AuditLog | None = None
    recent_answers: RecentAnswers = msgspec.field(default_factory=RecentAnswers)
    dealer: Dealer = msgspec.field(default_factory=Dealer)
    intents: IntentActions | None = None
    intent_hooks: Mapping[str, ObjectHook] = {}
    """By kind of document: who acts on what users write."""
    intent_settings: IntentSettings = IntentSettings()
    errands: tuple[Errand, ...] = ()
    """Started and stopped with the server."""
    closers: tuple[Callable[[], None], ...] = ()
    """Called when it stops, after the errands."""
    background: Background = msgspec.field(default_factory=Background)
    oidc: OidcSettings = OidcSettings()
    """Of the issuer at which people sign in to the console, if it has a client there."""
    seal: Seal = msgspec.field(default=cast("Seal", None))
    """Of cookies; made from the ledger."""
    issuer: IssuerLogin = msgspec.field(default=cast("IssuerLogin", None))
    """Where people sign in; made from its settings."""
    fleet: FleetFollowers = msgspec.field(default=cast("FleetFollowers", None))
    """The map of the fleet, and who follows it; made from the ledger and the keeper."""

    def __post_init__(self) -> None:
        self.seal = Seal(self.ledger)
        self.issuer = IssuerLogin(self.oidc)
        self.fleet = FleetFollowers(FleetMaps(self.ledger, self.keeper))

    def start(self) -> None:
        self.reload_on_hangup()
        for each in self.errands:
            self.background.start(kept_going(each))

    def reload_on_hangup(self) -> None:
        """SIGHUP opens the audit log anew. Tokens and certificates are watched as it is."""
        # At a terminal SIGHUP means that the terminal is gone, and the server goes with it.
        by_hand = sys.stdin is not None and sys.stdin.isatty()
        if threading.current_thread() is threading.main_thread() and not by_hand:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self.reload)

    def reload(self) -> None:
        if self.audit_log is not None:
            self.audit_log.reopen()

    async def close(self) -> None:
        await self.background.stop()
        await self.fleet.close()
        for each in self.closers:
            each()
        self.ledger.close()
        await self.authenticator.close()
        await self.issuer.close()
        if self.audit_log is not None:
            self.audit_log.close()


async def kept_going(errand: Errand) -> None:
    """One that fails is begun anew: requests are answered without it, too."""
    failures = Backoff()
    while True:
        try:
            await errand()
        except Exception:
            LOG.exception("errand failed", errand=getattr(errand, "__qualname__", ""))
        await asyncio.sleep(failures.next())
