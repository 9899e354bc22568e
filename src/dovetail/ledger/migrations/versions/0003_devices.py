"""Devices: attributes of providers, and the resource classes that select by them."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, ForeignKey, Integer, String, Text

revision = "0003"
down_revision = "0002"

RowId = BigInteger().with_variant(Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "provider_attributes",
        Column("provider_id", RowId, ForeignKey("providers.id"), primary_key=True),
        Column("key", String(255), primary_key=True),
        Column("value", Text, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "device_classes",
        Column("name", String(253), primary_key=True),
        Column("document", Text, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("changed_at", BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
