"""What a server process has to know; handed from `dovetail serve` to its workers."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from dovetail.ledger import open_ledger
from dovetail.rest.access import Authenticator, NoAuth, StaticTokens
from dovetail.rest.app import Application
from dovetail.rest.backend import Backend, Limits
from dovetail.rest.policy import RULE_SETS
from dovetail.service.keeper import SnapshotKeeper

VARIABLE = "DOVETAIL_WORKER_SETTINGS"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    database: str
    auth: str
    tokens: str | None
    policy: str
    cors_origin: str | None
    limits: Limits
    log_level: str

    def hand_over(self) -> None:
        """Leave them where `application` finds them, in this process or a worker's."""
        os.environ[VARIABLE] = msgspec.json.encode(self).decode()

    def authenticator(self) -> Authenticator:
        if self.auth == "tokens" and self.tokens is not None:
            return StaticTokens(Path(self.tokens))
        return NoAuth()


def application() -> Application:
    """The application of one server process."""
    from dovetail.cli import logs

    settings = msgspec.json.decode(os.environ[VARIABLE], type=Settings)
    logs.configure(settings.log_level)
    ledger = open_ledger(settings.database)
    return Application(
        Backend(
            ledger=ledger,
            keeper=SnapshotKeeper(ledger),
            authenticator=settings.authenticator(),
            rules=RULE_SETS[settings.policy],
            limits=settings.limits,
            cors_origin=settings.cors_origin,
        )
    )
