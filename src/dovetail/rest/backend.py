"""What handlers work with: the ledger, the snapshot and the limits of this server."""

from __future__ import annotations

import msgspec

from dovetail.ledger import Ledger
from dovetail.rest.access import Authenticator
from dovetail.rest.policy import RuleSet
from dovetail.service.keeper import SnapshotKeeper


class Limits(msgspec.Struct, frozen=True):
    body_bytes: int = 8 * 2**20
    fleet_bytes: int = 4 * 2**30
    query_bytes: int = 32 * 2**10
    search_seconds: float = 10.0


class Backend(msgspec.Struct):
    ledger: Ledger
    keeper: SnapshotKeeper
    authenticator: Authenticator
    rules: RuleSet
    limits: Limits = Limits()
    cors_origin: str | None = None
