"""Machine queues: who waits for units of machine groups, as the operator of each cluster tells."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, String, Text

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "machine_queues",
        Column("cluster", String(255), primary_key=True),
        Column("group_name", String(255), primary_key=True),
        Column("document", Text, nullable=False),
        Column("told_at", BigInteger, nullable=False),
    )
