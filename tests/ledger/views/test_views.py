"""What people look at is read alike from SQLite and from PostgreSQL."""

from __future__ import annotations

import asyncio

import pytest

from dovetail.core.claim import Claim
from dovetail.core.errors import NotFound
from dovetail.ledger import Ledger, aggregates, attributes, claims, providers
from dovetail.ledger.database import sealing_keys
from dovetail.ledger.intents import nodes
from dovetail.ledger.intents.observed import DeviceUse
from dovetail.ledger.machines.stock import GROUPS
from dovetail.ledger.views import fleet_names, groups, holders, machines, pods, trees, used_parts
from dovetail.ledger.views.holders import HolderFilter
from dovetail.service.machine_units import MachineLedger
from tests.ledger.world import make, new
from tests.service.machine_world import GROUP, guest, line, queued, shape, sleeper, stock
from tests.support.intents.seen import gpus, node, pod, seen


def claimed(ledger: Ledger, where: dict[str, dict[str, int]], project: str, user: str) -> str:
    wanted = Claim(
        consumer=new(),
        project=project,
        user=user,
        allocations=where,
        generation=None,
        consumer_type="INSTANCE",
    )
    ledger.write(lambda tx: claims.replace(tx, [wanted])).result()
    return wanted.consumer


def found(ledger: Ledger, **wanted: str) -> list[str]:
    rows = ledger.read(lambda tx: holders.listing(tx, HolderFilter(**wanted), limit=10)).result()
    return [each.uuid for each in rows]


def test_holders(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=8, DISK_GB=100)
    node = make(ledger, "node", host, MEMORY_MB=64)
    one = claimed(ledger, {host.uuid: {"VCPU": 1}, node.uuid: {"MEMORY_MB": 2}}, "Lab", "100%_")
    other = claimed(ledger, {host.uuid: {"VCPU": 2, "DISK_GB": 3}}, "web", "joe!")
    assert found(ledger) == [other, one]
    assert found(ledger, text="LA") == [one]
    assert found(ledger, text="0%_") == [one]
    assert found(ledger, text="joe!") == [other]
    assert found(ledger, text="j_e") == []
    assert found(ledger, text=other[:9].upper()) == [other]
    assert found(ledger, project="web", type="INSTANCE") == [other]
    shown = ledger.read(lambda tx: holders.get(tx, one)).result()
    assert [(each.name, each.host, each.resources) for each in shown.holds] == [
        ("host", "host", {"VCPU": 1}),
        ("node", "host", {"MEMORY_MB": 2}),
    ]
    assert shown.since is not None
    assert ledger.read(holders.consumers_by_project).result() == [
        (host.id, "Lab", 1),
        (host.id, "web", 1),
    ]
    with pytest.raises(NotFound):
        ledger.read(lambda tx: holders.get(tx, new())).result()


def test_a_tree(ledger: Ledger) -> None:
    host = make(ledger, "host", DISK_GB=100)
    first, second = (make(ledger, name, host, VCPU=8) for name in ("first", "second"))
    make(ledger, "below", first, FPGA=1)
    ledger.write(lambda tx: attributes.assign(tx, second, {"Kind": "numa"})).result()
    ledger.write(lambda tx: aggregates.assign(tx, host, [new()])).result()
    consumer = claimed(ledger, {second.uuid: {"VCPU": 3}}, "lab", "mia")
    tree = ledger.read(lambda tx: trees.get(tx, "below")).result()
    assert [(each.name, each.depth) for each in tree] == [
        ("host", 0),
        ("first", 1),
        ("below", 2),
        ("second", 1),
    ]
    last = tree[-1]
    assert (last.parent, last.attributes) == (host.uuid, {"Kind": "numa"})
    assert last.inventories["VCPU"].used == 3
    assert [(each.consumer, each.resources) for each in last.holders] == [(consumer, {"VCPU": 3})]
    assert len(tree[0].aggregates) == 1


def test_machines(ledger: Ledger) -> None:
    large = shape("large")
    assert ledger.read(used_parts.of_ledger).result()["machines"] is False

    async def sell() -> None:
        shop = MachineLedger(ledger)
        await shop.enter_node("n1", 64, 2**20, [])
        await shop.set_stock(GROUP, stock(3, large))
        await shop.move([guest(large), sleeper(large)])

    asyncio.run(sell())
    (group,) = ledger.read(machines.listing).result()
    (line,) = group.types
    assert (line.type, line.max, line.reserved, line.used) == ("large", 3, 1, 1)
    assert (line.waiting, group.told) == (None, None)
    assert len(group.holders) == 2
    known = ledger.read(fleet_names.of_fleet).result()
    assert [known.names[root] for root in known.no_hosts] == [GROUPS]
    assert ledger.read(used_parts.of_ledger).result() == {
        "classes": False,
        "machines": True,
        "intents": False,
    }


def test_pods_are_known_by_name_where_somebody_told(ledger: Ledger) -> None:
    """Guests by the operator of machines, pods on nodes of clusters by the mirror."""
    large, uid = shape("large"), new()
    waits = queued("soon", "large")
    sold = guest(large, consumer=new())
    unnamed = guest(large, consumer=new())

    async def sell() -> None:
        shop = MachineLedger(ledger)
        await shop.enter_node("n1", 64, 2**20, [])
        await shop.set_stock(GROUP, stock(3, large))
        await shop.move([sold, unnamed])
        await shop.set_queues({GROUP: line(waits, pods={sold.consumer: "trainer"})})

    asyncio.run(sell())
    bound = pod("web", "n1", uid=uid, deployment="d", app="shop", requests={"cpu": "500m"})
    used = [DeviceUse("gpu-0", uid), DeviceUse("gpu-1", "")]
    one = seen(node("n1"), [bound], devices=gpus("n1", "gpu-0", "gpu-1"), uses=used)
    ledger.write(lambda tx: nodes.enter(tx, "p1+c1", [one])).result()
    root = ledger.read(lambda tx: trees.get(tx, "p1+c1/n1")).result()[0]
    mine = Claim(
        consumer=uid,
        project="default",
        user="sa",
        allocations={root.uuid: {"CUSTOM_MILLICPU": 1}},
        consumer_type="POD",
    )
    ledger.write(lambda tx: claims.replace(tx, [mine])).result()

    types = {sold.consumer: "MACHINE", unnamed.consumer: "MACHINE", uid: "POD", new(): None}
    known = ledger.read(lambda tx: pods.names_of(tx, types)).result()
    assert known == {sold.consumer: "trainer", uid: "web"}
    (found,) = ledger.read(lambda tx: pods.on_node(tx, root.id)).result()
    assert (found.uid, found.namespace, found.name, found.app) == (uid, "default", "web", "shop")
    assert found.resources == {"CUSTOM_MILLICPU": 500, "CUSTOM_PODS": 1}
    assert found.devices == {"gpu-0": 1}


def test_names_of_the_fleet(ledger: Ledger) -> None:
    host = make(ledger, "host")
    ledger.write(lambda tx: providers.rename(tx, host, "renamed")).result()
    known = ledger.read(fleet_names.of_fleet).result()
    assert (known.names, known.clusters, known.gone) == ({host.id: "renamed"}, {}, frozenset())
    assert ledger.read(groups.listing).result() == []


def test_a_sealing_key_is_made_once(ledger: Ledger) -> None:
    assert ledger.read(lambda tx: sealing_keys.find(tx, "console")).result() is None
    first, again = (
        ledger.write(lambda tx: sealing_keys.ensure(tx, "console")).result() for _ in range(2)
    )
    assert first == again
    assert len(first) == sealing_keys.KEY_BYTES
    assert ledger.write(lambda tx: sealing_keys.ensure(tx, "other")).result() != first
