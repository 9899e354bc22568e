"""Intents: what users wrote, what clusters have, what was deployed where."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Text,
)

revision = "0004"
down_revision = "0003"

RowId = BigInteger().with_variant(Integer(), "sqlite")
# By code points on either database: all that is below a path is then one range of the index.
Path = Text(collation="C").with_variant(Text(), "sqlite")


def upgrade() -> None:
    documents()
    clusters()
    deployments()
    agreements()


def documents() -> None:
    op.create_table(
        "intent_objects",
        Column("path", Path, primary_key=True),
        # Nobody can be put below what is deleted at the same moment.
        Column("parent", Path, ForeignKey("intent_objects.path"), index=True),
        Column("kind", String(64), nullable=False, index=True),
        Column("position", BigInteger, nullable=False),
        Column("document", Text, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("changed_at", BigInteger, nullable=False),
    )
    op.create_table(
        "intent_references",
        Column("path", Path, ForeignKey("intent_objects.path"), primary_key=True),
        Column("target", Path, primary_key=True, index=True),
    )
    op.create_table(
        "intent_files",
        Column("path", Path, ForeignKey("intent_objects.path"), primary_key=True),
        Column("name", String(255), primary_key=True),
        Column("content", LargeBinary, nullable=False),
    )
    op.create_table(
        "idempotency",
        Column("key", String(255), primary_key=True),
        Column("caller", String(255), primary_key=True),
        Column("digest", String(64), nullable=False),
        Column("status", SmallInteger, nullable=False),
        Column("body", Text, nullable=False),
        Column("created_at", BigInteger, nullable=False, index=True),
    )


def clusters() -> None:
    op.create_table(
        "clusters",
        Column("name", Path, primary_key=True),
        Column("state", String(32), nullable=False),
        Column("why", Text, nullable=False),
        Column("observed_at", BigInteger, nullable=False),
        Column("source", String(32), nullable=False),
        # What is done while it does not answer.
        Column("unreachable", String(32), nullable=False),
        Column("classes", Text, nullable=False),
    )
    op.create_table(
        "cluster_nodes",
        # The root of the node's tree of providers.
        Column("root_id", RowId, primary_key=True, autoincrement=False),
        Column("cluster", Path, nullable=False, index=True),
        Column("name", String(253), nullable=False),
        Column("document", Text, nullable=False),
        # Who is on it: changes far more often than the node.
        Column("pods", Text, nullable=False),
    )


def deployments() -> None:
    op.create_table(
        "deployments",
        Column("id", String(36), primary_key=True),
        Column("group_path", Path, nullable=False),
        Column("revision", BigInteger, nullable=False),
        Column("state", String(32), nullable=False, index=True),
        Column("document", Text, nullable=False),
        Column("created_at", BigInteger, nullable=False),
        Column("changed_at", BigInteger, nullable=False),
        Index("ix_deployments_group", "group_path", "revision"),
    )
    op.create_table(
        "deployment_objects",
        Column("deployment", String(36), ForeignKey("deployments.id"), primary_key=True),
        Column("cluster", Path, primary_key=True),
        Column("app", String(128), primary_key=True),
        Column("position", BigInteger, primary_key=True, autoincrement=False),
        Column("object_key", Text, nullable=False),
        Column("document", Text, nullable=False),
        Column("state", String(32), nullable=False),
        Column("message", Text, nullable=False),
    )


def agreements() -> None:
    """Who does what is for one alone, and what controllers said."""
    op.create_table(
        "leases",
        Column("name", String(255), primary_key=True),
        Column("holder", String(255), nullable=False),
        Column("until", BigInteger, nullable=False),
    )
    op.create_table(
        "controller_answers",
        Column("controller", String(128), primary_key=True),
        Column("group_path", Path, primary_key=True),
        Column("document", Text, nullable=False),
        Column("answered_at", BigInteger, nullable=False),
    )
