"""Deployment intent groups of all projects, or of one, with the state of each: for the console."""

from __future__ import annotations

import msgspec

from dovetail.ledger.database.protocol import Transaction
from dovetail.ledger.intents import objects

GROUP = "deployment-intent-group"


class ListedGroup(msgspec.Struct, frozen=True):
    project: str
    app: str
    version: str
    group: str
    path: str
    state: str | None
    """None: it was never approved."""
    revision: int | None


def listing(tx: Transaction, project: str | None = None) -> list[ListedGroup]:
    states = {
        path: (state, revision)
        for path, state, revision in tx.rows(
            "SELECT group_path, state, revision FROM deployments ORDER BY revision"
        )
    }
    found: list[ListedGroup] = []
    for each in objects.of_kind(tx, GROUP):
        _, its_project, _, app, version, _, group = each.path.split("/")
        if project in (None, its_project):
            state, revision = states.get(each.path, (None, None))
            found.append(ListedGroup(its_project, app, version, group, each.path, state, revision))
    return found
