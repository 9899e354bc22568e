"""Sealing keys: what servers of one ledger seal session cookies with."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, String

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "sealing_keys",
        Column("name", String(64), primary_key=True),
        Column("key_hex", String(64), nullable=False),
        Column("created_at", BigInteger, nullable=False),
    )
