"""Decisions: what was asked, chosen and passed over, for the last claims."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, String, Text

revision = "0002"
down_revision = "0001"

RowId = BigInteger().with_variant(Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "decisions",
        Column("id", RowId, primary_key=True, autoincrement=True),
        Column("decided_at", BigInteger, nullable=False),
        Column("consumer", String(36), nullable=False, index=True),
        Column("document", Text, nullable=False),
        sqlite_autoincrement=True,
    )
