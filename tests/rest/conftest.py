"""An application over an empty SQLite ledger, and a client of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from dovetail.ledger import open_ledger
from dovetail.rest.auth.noauth import NoAuth
from dovetail.rest.doors import DOORS
from dovetail.rest.server.app import Application
from dovetail.rest.server.backend import ServerBackend
from dovetail.rest.server.door import Door
from dovetail.rest.server.policy import RULE_SETS
from dovetail.service.snapshots import SnapshotKeeper
from tests.rest.client import Client

Make = Callable[..., Client]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Make]:
    """Makes a client of a server configured as said."""
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db")
    clients: list[Client] = []

    def make(policy: str = "legacy", doors: Sequence[Door] = DOORS, **settings: Any) -> Client:
        backend = ServerBackend(
            **{
                "ledger": ledger,
                "keeper": SnapshotKeeper(ledger),
                "authenticator": NoAuth(),
                "rules": RULE_SETS[policy],
                **settings,
            }
        )
        clients.append(Client(Application(backend, doors)))
        return clients[-1]

    yield make
    for client in clients:
        client.close()
    ledger.close()


@pytest.fixture
def client(serve: Make) -> Client:
    return serve()
