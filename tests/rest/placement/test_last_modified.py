"""When what an answer shows was last changed: said where Placement says it, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rest.client import Client
from tests.rest.fleets import load, tree, uid

PATH = f"/resource_providers/{uid('host')}/inventories"


@pytest.fixture
def host(client: Client) -> Client:
    load(client, tree("host", inventories={"VCPU": 2}))
    return client


def put(client: Client, stock: dict[str, Any]) -> Any:
    generation = client.get(PATH).json()["resource_provider_generation"]
    body = {"resource_provider_generation": generation, "inventories": stock}
    return client.call("PUT", PATH, body)


def test_inventories_say_when_they_changed(host: Client) -> None:
    for reply in (put(host, {"VCPU": {"total": 3}}), host.get(PATH)):
        assert reply.status_code == 200
        assert "last-modified" in reply.headers
        assert reply.headers["cache-control"] == "no-cache"


def test_where_no_inventory_is_left_there_is_nothing_to_date(host: Client) -> None:
    for reply in (put(host, {}), host.get(PATH)):
        assert reply.status_code == 200
        assert reply.json()["inventories"] == {}
        assert "last-modified" not in reply.headers
        assert reply.headers["cache-control"] == "no-cache"
