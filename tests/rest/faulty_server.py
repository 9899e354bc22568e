"""A server whose database gets into trouble: for tests of docs/operation.md, Faults."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import httpx2

from dovetail.ledger import Ledger, open_ledger
from dovetail.ledger.database.settings import LedgerSettings
from dovetail.rest.auth.noauth import NoAuth
from dovetail.rest.doors import DOORS
from dovetail.rest.server.app import Application
from dovetail.rest.server.backend import ServerBackend
from dovetail.rest.server.policy import RULE_SETS
from dovetail.service.snapshots import SnapshotKeeper
from tests.rest.client import Client

FOREVER = 60
"""Longer than anything here may take, however busy the machine is."""
CANDIDATES = "/allocation_candidates?resources=VCPU:1"


class FaultyServer:
    """A server with one host of eight VCPU, and what clients see of it."""

    def __init__(self, database: str, settings: LedgerSettings) -> None:
        self.ledger: Ledger = open_ledger(database, settings)
        self._client = Client(
            Application(
                ServerBackend(
                    ledger=self.ledger,
                    keeper=SnapshotKeeper(self.ledger),
                    authenticator=NoAuth(),
                    rules=RULE_SETS["legacy"],
                ),
                DOORS,
            )
        )
        self.host = self.new_provider("host").json()["uuid"]
        inventory = {
            "resource_provider_generation": 0,
            "inventories": {"VCPU": {"total": 8}},
        }
        assert self.call(
            "PUT", f"/resource_providers/{self.host}/inventories", inventory
        ).is_success

    def call(self, method: str, path: str, body: Any = None) -> httpx2.Response:
        return self._client.run(asyncio.wait_for(self._client.send(method, path, body), FOREVER))

    def together(self, *calls: tuple[str, str, Any]) -> list[httpx2.Response]:
        async def all_of_them() -> list[httpx2.Response]:
            return list(await asyncio.gather(*(self._client.send(*each) for each in calls)))

        return self._client.run(asyncio.wait_for(all_of_them(), FOREVER))

    def status(self, path: str) -> int:
        return self.call("GET", path).status_code

    def new_provider(self, name: str) -> httpx2.Response:
        return self.call("POST", "/resource_providers", {"name": name})

    def is_there(self, name: str) -> bool:
        found = self.call("GET", f"/resource_providers?name={name}").json()
        return bool(found["resource_providers"])

    def is_well(self) -> bool:
        """Reads, writes and readiness; whatever the fault was, it is over."""
        written = self.new_provider(f"well-{uuid.uuid4()}").is_success
        return written and self.status(CANDIDATES) == self.status("/readyz") == 200

    def recovers(self) -> bool:
        """By itself, once the fault is over: asked as often as a load balancer would."""
        return any(self.is_well() for _ in range(20))

    def close(self) -> None:
        self._client.close()
        self.ledger.close()


def assert_away(refused: httpx2.Response) -> None:
    """Nothing was done, and trying again is safe."""
    assert refused.status_code == 503
    assert refused.headers["retry-after"] == "1"
    assert "cannot be used now" in refused.text


def assert_unknown(refused: httpx2.Response) -> None:
    assert refused.status_code == 503
    assert "retry-after" not in refused.headers
    assert "outcome of this write is unknown" in refused.text
