"""Hosts of the map are hardware, and dead where their node is known not to be ready."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dovetail.ledger import Ledger, open_ledger
from dovetail.ledger.intents import nodes
from dovetail.ledger.intents.observed import SeenNode, pruned_node
from dovetail.podfit.objects import Condition, Node, NodeStatus, ObjectMeta
from dovetail.service.machine_units import MachineLedger
from tests.rest.client import Client
from tests.rest.console.test_pages import read
from tests.rest.fleets import load, tree
from tests.service.machine_world import GROUP, shape, stock

MAP = "/dovetail/v1/map"
OK, DEAD = 0, 2


@pytest.fixture
def ledger(client: Client, tmp_path: Path) -> Iterator[Ledger]:
    """The client's."""
    opened = open_ledger(f"sqlite:///{tmp_path}/ledger.db")
    yield opened
    opened.close()


def the_map(client: Client) -> Any:
    return client.get(MAP).json()


def test_stock_of_machines_is_none(client: Client, ledger: Ledger) -> None:
    """The provider that the ledger keeps stock in is no host, whatever cluster it is of; one that
    somebody else called so is."""
    host = {"inventories": {"VCPU": 4}}
    load(client, tree("n1", **host), tree("our machines:", **host))
    for cluster in ("", "west"):
        client.run(MachineLedger(ledger, cluster).set_stock(GROUP, stock(3, shape("large"))))
    load(client, tree("n2", **host))
    found = the_map(client)
    assert found["hosts"]["name"] == ["n1", "our machines:", "n2"]
    assert (found["classes"], found["lanes"]["host"]) == (["VCPU"], [0, 1, 2])
    assert found["totals"]["hosts"] == 3
    verdicts = client.get("/dovetail/v1/explain/hosts?resources=VCPU:5").json()
    assert verdicts["verdict"] == [2, 2, 2]
    assert client.get(f"{MAP}/holders").json()["project"] == [-1, -1, -1]
    page = read(client, "/console")
    assert "3 hosts." in page.text
    assert page.text.count("machines:") == 1


def test_a_node_of_a_pool_that_is_not_ready_is_dead(client: Client, ledger: Ledger) -> None:
    shop = MachineLedger(ledger)
    seen: list[Any] = []
    for is_ready in (True, False, True):
        client.run(shop.enter_node("n1", 64, 2**20, [], is_ready=is_ready))
        seen.append(the_map(client)["hosts"]["state"])
    assert seen == [[OK], [DEAD], [OK]]
    client.run(shop.enter_node("n1", 64, 2**20, [], is_ready=False))
    assert client.run(shop.leave_node("n1"))
    assert the_map(client)["hosts"]["state"] == []


def test_who_leaves_a_pool_says_nothing_more_of_a_node(client: Client, ledger: Ledger) -> None:
    """What others have there is as it was before the pool."""
    load(client, tree("n1", inventories={"DISK_GB": 4}))
    shop = MachineLedger(ledger)
    client.run(shop.enter_node("n1", 64, 2**20, [], is_ready=False))
    assert the_map(client)["hosts"]["state"] == [DEAD]
    assert client.run(shop.leave_node("n1"))
    assert the_map(client)["hosts"]["state"] == [OK]


def seen_node(name: str, status: str | None) -> SeenNode:
    """As a mirror sees it; None: it says nothing of being ready."""
    conditions = () if status is None else (Condition(type="Ready", status=status),)
    node = Node(
        metadata=ObjectMeta(name=name),
        status=NodeStatus(allocatable={"cpu": "8"}, conditions=conditions),
    )
    return SeenNode(node=pruned_node(node))


def test_a_node_of_a_registered_cluster_that_is_not_ready_is_dead(
    client: Client, ledger: Ledger
) -> None:
    cluster = "lab+east"
    for told in (("True", "True", None), ("True", "False", "Unknown"), ("True", "True", "True")):
        seen = [seen_node(f"n{at}", status) for at, status in enumerate(told)]
        ledger.write(partial(nodes.replace, cluster=cluster, seen=seen)).result()
        dead = [DEAD if status in ("False", "Unknown") else OK for status in told]
        assert the_map(client)["hosts"]["state"] == dead
