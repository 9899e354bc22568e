"""One server process, made from the configuration that `dovetail serve` hands to its workers."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import structlog

from dovetail.aio.pace import retire_startup_objects
from dovetail.cli.run.intents import intent_parts
from dovetail.cli.run.settings import ServerSettings
from dovetail.ledger import open_ledger
from dovetail.rest.auth.chain import authenticator_of
from dovetail.rest.auth.hosts import AllowedHosts
from dovetail.rest.auth.identity import Authenticator
from dovetail.rest.auth.rate_limit import limiter_of
from dovetail.rest.auth.settings import AuthSettings, OidcSettings
from dovetail.rest.doors import DOORS
from dovetail.rest.query.typical import read_typical
from dovetail.rest.server.app import Application
from dovetail.rest.server.audit_log import AuditLog
from dovetail.rest.server.backend import ServerBackend
from dovetail.rest.server.policy import RULE_SETS
from dovetail.service.snapshots import SnapshotKeeper
from dovetail.service.typical_requests import TypicalRequests
from dovetail.telemetry import logs, tracing

VARIABLE = "DOVETAIL_WORKER_SETTINGS"


def hand_over(settings: ServerSettings) -> None:
    """Leave it where `application` finds it, in this process or a worker's."""
    os.environ[VARIABLE] = msgspec.json.encode(settings).decode()


def authenticator(settings: ServerSettings) -> Authenticator:
    return authenticator_of(
        AuthSettings(
            ways=settings.auth,
            tokens=settings.tokens,
            oidc=settings.oidc,
            keystone=settings.keystone,
        )
    )


def allowed_hosts(settings: ServerSettings) -> AllowedHosts | None:
    """Tokens are proof enough: who has one may call the server whatever he likes."""
    if "noauth2" not in settings.auth:
        return None
    return AllowedHosts(settings.host, settings.allowed_hosts)


def audit_log(settings: ServerSettings) -> AuditLog | None:
    return AuditLog(Path(settings.audit_log)) if settings.audit_log is not None else None


def typical_requests(settings: ServerSettings) -> TypicalRequests:
    return TypicalRequests(
        None if settings.typical is None else read_typical(Path(settings.typical))
    )


def application() -> Application:
    """The application of one server process."""
    settings = msgspec.json.decode(os.environ[VARIABLE], type=ServerSettings)
    logs.configure(settings.log_level)
    trace_if_asked()
    ledger = open_ledger(settings.database, settings.ledger)
    intents = intent_parts(ledger, settings.intents)
    made = Application(
        ServerBackend(
            ledger=ledger,
            keeper=SnapshotKeeper(ledger, typical_requests(settings)),
            authenticator=authenticator(settings),
            rules=RULE_SETS[settings.policy],
            limits=settings.max,
            allowed_hosts=allowed_hosts(settings),
            cors_origin=settings.cors_origin,
            rate_limiter=limiter_of(settings.rate),
            audit_log=audit_log(settings),
            metrics=settings.metrics,
            oidc=settings.oidc if "oidc" in settings.auth else OidcSettings(),
            intents=intents.actions,
            intent_settings=settings.intents,
            intent_hooks=intents.hooks,
            errands=intents.errands,
            closers=intents.closers,
        ),
        DOORS,
    )
    retire_startup_objects()
    return made


def trace_if_asked() -> None:
    if not tracing.asked_for():
        return
    try:
        tracing.start()
    except ImportError as error:
        log = structlog.get_logger("dovetail.cli")
        log.warning("no traces: install dovetail[otel]", missing=error.name)
