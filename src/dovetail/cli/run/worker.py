"""One server process, made from the configuration that `dovetail serve` hands to its workers."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import structlog

from dovetail.cli.run.settings import ServerSettings
from dovetail.ledger import open_ledger
from dovetail.rest.auth.chain import authenticator_of
from dovetail.rest.auth.identity import Authenticator
from dovetail.rest.auth.rate_limit import limiter_of
from dovetail.rest.auth.settings import AuthSettings
from dovetail.rest.doors import DOORS
from dovetail.rest.query.typical import read_typical
from dovetail.rest.server.app import Application
from dovetail.rest.server.audit_log import AuditLog
from dovetail.rest.server.backend import Backend
from dovetail.rest.server.policy import RULE_SETS
from dovetail.service.demand import Demand
from dovetail.service.snapshots import SnapshotKeeper
from dovetail.telemetry import logs, tracing

VARIABLE = "DOVETAIL_WORKER_SETTINGS"


def hand_over(config: ServerSettings) -> None:
    """Leave it where `application` finds it, in this process or a worker's."""
    os.environ[VARIABLE] = msgspec.json.encode(config).decode()


def authenticator(config: ServerSettings) -> Authenticator:
    return authenticator_of(
        AuthSettings(
            ways=config.auth, tokens=config.tokens, oidc=config.oidc, keystone=config.keystone
        )
    )


def audit_log(config: ServerSettings) -> AuditLog | None:
    return AuditLog(Path(config.audit_log)) if config.audit_log is not None else None


def demand(config: ServerSettings) -> Demand:
    return Demand(None if config.typical is None else read_typical(Path(config.typical)))


def application() -> Application:
    """The application of one server process."""
    config = msgspec.json.decode(os.environ[VARIABLE], type=ServerSettings)
    logs.configure(config.log_level)
    trace_if_asked()
    ledger = open_ledger(config.database)
    return Application(
        Backend(
            ledger=ledger,
            keeper=SnapshotKeeper(ledger, demand(config)),
            authenticator=authenticator(config),
            rules=RULE_SETS[config.policy],
            limits=config.max,
            cors_origin=config.cors_origin,
            rate_limiter=limiter_of(config.rate),
            audit_log=audit_log(config),
            metrics=config.metrics,
        ),
        DOORS,
    )


def trace_if_asked() -> None:
    if not tracing.asked_for():
        return
    try:
        tracing.start()
    except ImportError as error:
        log = structlog.get_logger("dovetail.cli")
        log.warning("no traces: install dovetail[otel]", missing=error.name)
