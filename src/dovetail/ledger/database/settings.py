"""Settings of a ledger's database: how long its callers wait, and how many ask it at once.

A section of every daemon that opens a ledger; `open_ledger` takes it. Migrations, bulk loads,
backups, restores and first snapshots are under `silence_seconds` alone.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dovetail.config.declaration import SettingsStruct

Seconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1, le=256)]


class LedgerSettings(SettingsStruct, frozen=True):
    """How long the database may take, and how many connections it is asked by."""

    answer_seconds: Annotated[
        Seconds,
        Meta(description="Longest wait of a request for the database, queue included; 503 beyond."),
    ] = 10.0
    statement_seconds: Annotated[
        Seconds, Meta(description="PostgreSQL: longest statement of a request's transaction.")
    ] = 8.0
    lock_seconds: Annotated[
        Seconds, Meta(description="PostgreSQL: longest wait for rows that others have locked.")
    ] = 5.0
    connect_seconds: Annotated[
        Annotated[int, Meta(ge=2)], Meta(description="PostgreSQL: longest wait for a connection.")
    ] = 5
    keepalive_seconds: Annotated[
        Annotated[int, Meta(ge=3)],
        Meta(
            description="PostgreSQL over TCP: after so long without a sign of the other end, "
            "either end gives the connection up (keepalives, `tcp_user_timeout`)."
        ),
    ] = 15
    silence_seconds: Annotated[
        Seconds,
        Meta(
            description="PostgreSQL over TCP: bulk loads and first snapshots may take any time, "
            "but are given up after so long without a byte sent or received."
        ),
    ] = 120.0
    readers: Annotated[
        Count, Meta(description="Reads at a time; PostgreSQL: as many connections.")
    ] = 4
    writers: Annotated[
        Count, Meta(description="PostgreSQL: writes at a time, each on a connection of its own.")
    ] = 8


DEFAULTS = LedgerSettings()
