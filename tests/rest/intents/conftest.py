"""Clients of the door of intents: as it is, and as it is for EMCO's clients."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dovetail.cli.run.intents import intent_parts
from dovetail.ledger import Ledger
from dovetail.rest.auth.noauth import NoAuth
from dovetail.rest.doors import DOORS
from dovetail.rest.server.app import Application
from dovetail.rest.server.backend import ServerBackend
from dovetail.rest.server.policy import RULE_SETS
from dovetail.service.intents.settings import IntentSettings
from dovetail.service.snapshots import SnapshotKeeper
from tests.rest.client import Client
from tests.rest.conftest import Make
from tests.rest.intents.client import IntentsClient
from tests.rest.intents.operator import Operator


@pytest.fixture
def intents(serve: Make) -> IntentsClient:
    return IntentsClient(serve())


@pytest.fixture
def emco(serve: Make) -> IntentsClient:
    return IntentsClient(serve(intent_settings=IntentSettings(emco_status_codes=True)))


@pytest.fixture
def whole(ledger: Ledger) -> Iterator[Client]:
    """A server with all parts of intents but those that need clusters."""
    settings = IntentSettings()
    parts = intent_parts(ledger, settings)
    backend = ServerBackend(
        ledger=ledger,
        keeper=SnapshotKeeper(ledger),
        authenticator=NoAuth(),
        rules=RULE_SETS["legacy"],
        intents=parts.actions,
        intent_settings=settings,
        intent_hooks=parts.hooks,
    )
    client = Client(Application(backend, DOORS))
    yield client
    client.close()
    for each in parts.closers:
        each()


@pytest.fixture
def operator(whole: Client) -> Operator:
    return Operator(whole)
