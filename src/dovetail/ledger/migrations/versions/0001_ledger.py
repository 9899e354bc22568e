"""The first tables.

`inventories.used` repeats the sum of the allocations, kept in the same transaction, so that a claim
checks and a snapshot loads without summing. `changes` is the log that snapshots follow.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import BigInteger, Column, Double, ForeignKey, Index, Integer, SmallInteger, String

revision = "0001"
down_revision = None

# SQLite numbers rows by itself only in a column declared INTEGER.
RowId = BigInteger().with_variant(Integer(), "sqlite")


def upgrade() -> None:
    names()
    providers()
    holdings()
    changes()


def names() -> None:
    op.create_table(
        "resource_classes",
        Column("id", RowId, primary_key=True, autoincrement=False),
        Column("name", String(255), nullable=False, unique=True),
        Column("changed_at", BigInteger, nullable=False),
    )
    op.create_table(
        "traits",
        Column("id", RowId, primary_key=True, autoincrement=True),
        Column("name", String(255), nullable=False, unique=True),
        Column("created_at", BigInteger, nullable=False),
    )


def providers() -> None:
    op.create_table(
        "providers",
        Column("id", RowId, primary_key=True, autoincrement=True),
        Column("uuid", String(36), nullable=False, unique=True),
        Column("name", String(200), nullable=False, unique=True),
        Column("generation", BigInteger, nullable=False),
        Column("parent_id", RowId, ForeignKey("providers.id"), index=True),
        Column("root_id", RowId, nullable=False, index=True),
        Column("changed_at", BigInteger, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "inventories",
        Column("provider_id", RowId, ForeignKey("providers.id"), primary_key=True),
        Column("class_id", RowId, ForeignKey("resource_classes.id"), primary_key=True),
        Column("total", BigInteger, nullable=False),
        Column("reserved", BigInteger, nullable=False),
        Column("min_unit", BigInteger, nullable=False),
        Column("max_unit", BigInteger, nullable=False),
        Column("step_size", BigInteger, nullable=False),
        Column("allocation_ratio", Double, nullable=False),
        Column("used", BigInteger, nullable=False),
        Column("changed_at", BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "provider_traits",
        Column("provider_id", RowId, ForeignKey("providers.id"), primary_key=True),
        Column("trait_id", RowId, ForeignKey("traits.id"), primary_key=True, index=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "provider_aggregates",
        Column("provider_id", RowId, ForeignKey("providers.id"), primary_key=True),
        Column("aggregate", String(36), primary_key=True, index=True),
        sqlite_with_rowid=False,
    )


def holdings() -> None:
    op.create_table(
        "consumers",
        Column("id", RowId, primary_key=True, autoincrement=True),
        Column("uuid", String(36), nullable=False, unique=True),
        Column("generation", BigInteger, nullable=False),
        Column("project_id", String(255), nullable=False),
        Column("user_id", String(255), nullable=False),
        Column("consumer_type", String(255)),
        Index("ix_consumers_project_id", "project_id", "user_id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "allocations",
        Column("consumer_id", RowId, ForeignKey("consumers.id"), primary_key=True),
        Column("provider_id", RowId, ForeignKey("providers.id"), primary_key=True, index=True),
        Column("class_id", RowId, ForeignKey("resource_classes.id"), primary_key=True),
        Column("used", BigInteger, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )


def changes() -> None:
    op.create_table(
        "changes",
        Column("seq", RowId, primary_key=True, autoincrement=True),
        Column("kind", SmallInteger, nullable=False),
        Column("root_id", RowId, nullable=False),
        sqlite_autoincrement=True,
    )
    if op.get_bind().dialect.name == "postgresql":
        # Sequence numbers can become visible out of order there. The writer's transaction id
        # tells a reader what it has not seen yet, and which trimmed rows it has missed.
        for statement in (
            "ALTER TABLE changes ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id()",
            "CREATE INDEX ix_changes_xid ON changes (xid)",
            "CREATE TABLE changes_trimmed (xid xid8 NOT NULL)",
            "INSERT INTO changes_trimmed VALUES ('1')",
        ):
            op.execute(sa.text(statement))
