"""Nodes of clusters in the ledger: what they have, what others use, and how they come and go."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

import pytest

from dovetail.core.claim import Claim
from dovetail.core.errors import CapacityExceeded
from dovetail.ledger import Ledger, Transaction, aggregates, claims, inventories, providers
from dovetail.ledger.bulk import audit
from dovetail.ledger.database.protocol import Operation
from dovetail.ledger.devices import DEVICE_CLASS
from dovetail.ledger.intents import node_rows, nodes, others
from dovetail.ledger.intents.node_names import (
    aggregate_uuid,
    consumer_uuid,
    device_uuid,
    others_uuid,
    root_name,
    root_uuid,
)
from dovetail.ledger.intents.observed import DeviceUse
from dovetail.ledger.intents.resource_names import class_of_resource
from tests.support.intents.seen import gpus, node, pod, seen

CLUSTER = "p1+c1"
GPU = "nvidia.com/gpu"

T = TypeVar("T")


def done(ledger: Ledger, operation: Operation[T]) -> T:
    return ledger.write(operation).result()


def held(ledger: Ledger, name: str, cluster: str = CLUSTER) -> dict[str, int]:
    """What is held of the node's own resources by anybody."""

    def read(tx: Transaction) -> dict[str, int]:
        root = providers.get(tx, root_uuid(cluster, name))
        return {
            resource: each.used
            for resource, each in inventories.of_provider(tx, root).items()
            if each.used
        }

    return ledger.read(read).result()


def capacity(ledger: Ledger, name: str, cluster: str = CLUSTER) -> dict[str, int]:
    def read(tx: Transaction) -> dict[str, int]:
        root = providers.get(tx, root_uuid(cluster, name))
        found = inventories.of_provider(tx, root)
        return {resource: each.inventory.capacity for resource, each in found.items()}

    return ledger.read(read).result()


def names(ledger: Ledger) -> list[str]:
    rows = ledger.read(lambda tx: tx.rows("SELECT name FROM providers ORDER BY name")).result()
    return [name for (name,) in rows]


def claim(deployment: str, on: str, **amounts: int) -> Claim:
    return Claim(
        consumer=consumer_uuid(deployment, "fwall", CLUSTER),
        project="p",
        user="u",
        allocations={root_uuid(CLUSTER, on): amounts},
    )


def is_sound(ledger: Ledger) -> bool:
    """Overfull inventories apart, which are what was observed."""
    faults = ledger.read(audit.examine).result().faults
    return not [each for each in faults if each.kind != "overcommit"]


def test_a_node_is_a_tree_and_its_cluster_an_aggregate(ledger: Ledger) -> None:
    one = seen(node("n1", cpu="3500m", more={GPU: "2"}), devices=gpus("n1", "gpu-0"))
    assert done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [one])) == 1
    assert capacity(ledger, "n1") == {
        "CUSTOM_MILLICPU": 3500,
        "CUSTOM_MEMORY_BYTES": 16 * 2**30,
        "CUSTOM_PODS": 110,
        "CUSTOM_NVIDIA_COM_GPU": 2,
    }
    assert names(ledger) == ["p1+c1/n1", "p1+c1/n1/gpu-0"]

    def of_root(tx: Transaction) -> list[str]:
        return aggregates.of_provider(tx, providers.get(tx, root_uuid(CLUSTER, "n1")))

    assert ledger.read(of_root).result() == [aggregate_uuid(CLUSTER)]
    assert is_sound(ledger)


def test_what_is_as_before_costs_a_look(ledger: Ledger) -> None:
    one = seen(node("n1"), [pod("web", "n1", requests={"cpu": "1"})])
    assert done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [one])) == 1
    log = ledger.read(lambda tx: tx.rows("SELECT count(*) FROM changes")).result()
    assert done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [one])) == 0
    assert ledger.read(lambda tx: tx.rows("SELECT count(*) FROM changes")).result() == log


def test_what_pods_of_others_use_is_held_by_one_consumer_per_node(ledger: Ledger) -> None:
    pods = [
        pod("web", "n1", requests={"cpu": "500m", "memory": "1Gi"}),
        pod("job", "n1", requests={"cpu": 2}),
        pod("ended", "n1", phase="Succeeded", requests={"cpu": 4}),
    ]
    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [seen(node("n1"), pods)]))
    assert held(ledger, "n1") == {
        "CUSTOM_MILLICPU": 2500,
        "CUSTOM_MEMORY_BYTES": 2**30,
        "CUSTOM_PODS": 2,
    }
    holding = ledger.read(
        lambda tx: claims.of_consumer(tx, others_uuid(root_name(CLUSTER, "n1")))
    ).result()
    assert holding is not None
    assert holding.consumer_type == "KUBE_PODS"

    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [seen(node("n1"), pods[:1])]))
    assert held(ledger, "n1")["CUSTOM_MILLICPU"] == 500
    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [seen(node("n1"))]))
    assert held(ledger, "n1") == {}
    assert is_sound(ledger)


def test_others_may_use_more_than_there_is_and_then_nobody_gets_any(ledger: Ledger) -> None:
    full = seen(node("n1", cpu="2"), [pod("web", "n1", requests={"cpu": "3"})])
    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [full]))
    assert held(ledger, "n1")["CUSTOM_MILLICPU"] == 3000
    with pytest.raises(CapacityExceeded):
        done(ledger, lambda tx: claims.replace(tx, [claim("d1", "n1", CUSTOM_MILLICPU=1)]))


def test_pods_of_a_deployment_that_holds_its_claim_are_no_others(ledger: Ledger) -> None:
    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [seen(node("n1"))]))
    done(ledger, lambda tx: claims.replace(tx, [claim("d1", "n1", CUSTOM_MILLICPU=4000)]))
    pods = [
        pod("core-0", "n1", deployment="d1", app="fwall", requests={"cpu": 4}),
        pod("stray-0", "n1", deployment="d2", app="fwall", requests={"cpu": 1}),
    ]
    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [seen(node("n1"), pods)]))
    assert held(ledger, "n1")["CUSTOM_MILLICPU"] == 5000, "d2 holds nothing, so it is an other"

    def give_back(tx: Transaction) -> None:
        claims.release(tx, consumer_uuid("d1", "fwall", CLUSTER))
        others.recount(tx, [row.root_id for row in node_rows.of_cluster(tx, CLUSTER)])

    done(ledger, give_back)
    assert held(ledger, "n1")["CUSTOM_MILLICPU"] == 5000, "its pod is still there"


def test_a_node_that_shrinks_below_what_is_held_gives_nothing_more(ledger: Ledger) -> None:
    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [seen(node("n1", more={GPU: "4"}))]))
    taken = claim("d1", "n1", CUSTOM_MILLICPU=6000, CUSTOM_NVIDIA_COM_GPU=2)
    done(ledger, lambda tx: claims.replace(tx, [taken]))
    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [seen(node("n1", cpu="4"))]))
    assert capacity(ledger, "n1")["CUSTOM_MILLICPU"] == 4000
    assert capacity(ledger, "n1")["CUSTOM_NVIDIA_COM_GPU"] == 0
    assert held(ledger, "n1")["CUSTOM_NVIDIA_COM_GPU"] == 2
    for more in ({"CUSTOM_MILLICPU": 1}, {"CUSTOM_NVIDIA_COM_GPU": 1}):
        with pytest.raises(CapacityExceeded):
            done(ledger, partial(claims.replace, claims=[claim("d2", "n1", **more)]))
    done(ledger, lambda tx: claims.release(tx, consumer_uuid("d1", "fwall", CLUSTER)))
    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [seen(node("n1", cpu="5"))]))
    assert "CUSTOM_NVIDIA_COM_GPU" not in capacity(ledger, "n1"), "nobody holds any: it goes"
    assert is_sound(ledger)


def test_a_node_that_goes_leaves_nothing_and_comes_back_as_it_was(ledger: Ledger) -> None:
    one = seen(node("n1"), [pod("web", "n1", requests={"cpu": "1"})], devices=gpus("n1", "gpu-0"))
    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [one]))
    done(ledger, lambda tx: nodes.leave(tx, CLUSTER, ["n1"]))
    assert names(ledger) == []
    assert ledger.read(node_rows.of_roots).result() == []
    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [one]))
    assert held(ledger, "n1")["CUSTOM_MILLICPU"] == 1000
    assert is_sound(ledger)


def test_a_node_that_goes_while_it_is_held_stays_on_record_until_it_is_released(
    ledger: Ledger,
) -> None:
    one = seen(node("n1"), devices=gpus("n1", "gpu-0"))
    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [one]))
    taken = claim("d1", "n1", CUSTOM_MILLICPU=1000)
    done(ledger, lambda tx: claims.replace(tx, [taken]))
    done(ledger, lambda tx: nodes.leave_cluster(tx, CLUSTER))
    assert names(ledger) == ["p1+c1/n1"]
    with pytest.raises(CapacityExceeded):
        done(ledger, lambda tx: claims.replace(tx, [claim("d2", "n1", CUSTOM_MILLICPU=1)]))
    done(ledger, nodes.sweep)
    assert names(ledger) == ["p1+c1/n1"]

    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [one]))
    assert capacity(ledger, "n1")["CUSTOM_MILLICPU"] == 8000
    assert held(ledger, "n1") == {"CUSTOM_MILLICPU": 1000}

    done(ledger, lambda tx: nodes.leave(tx, CLUSTER, ["n1"]))
    done(ledger, lambda tx: claims.release(tx, taken.consumer))
    done(ledger, nodes.sweep)
    assert names(ledger) == []
    assert is_sound(ledger)


def test_nodes_of_the_same_name_in_two_clusters_are_two(ledger: Ledger) -> None:
    done(ledger, lambda tx: nodes.enter(tx, "p1+c1", [seen(node("n1", cpu="1"))]))
    done(ledger, lambda tx: nodes.enter(tx, "p1+c2", [seen(node("n1", cpu="2"))]))
    assert capacity(ledger, "n1", "p1+c1")["CUSTOM_MILLICPU"] == 1000
    assert capacity(ledger, "n1", "p1+c2")["CUSTOM_MILLICPU"] == 2000
    done(ledger, lambda tx: nodes.leave_cluster(tx, "p1+c1"))
    assert names(ledger) == ["p1+c2/n1"]


def test_the_longest_names_are_told_apart(ledger: Ledger) -> None:
    cluster = f"{'p' * 128}+{'c' * 128}"
    long = ["n" * 252 + end for end in "ab"]
    for cpu, name in enumerate(long, 1):
        one = seen(node(name, cpu=str(cpu)), devices=gpus(name, "g" * 200 + "1", "g" * 200 + "2"))
        done(ledger, partial(nodes.enter, cluster=cluster, seen=[one]))
    assert len(names(ledger)) == 6
    assert [capacity(ledger, name, cluster)["CUSTOM_MILLICPU"] for name in long] == [1000, 2000]
    done(ledger, lambda tx: nodes.leave_cluster(tx, cluster))
    assert names(ledger) == []


def test_devices_that_pods_of_others_have_are_held(ledger: Ledger) -> None:
    web = pod("web", "n1")
    one = seen(
        node("n1"),
        [web],
        devices=gpus("n1", "gpu-0", "gpu-1"),
        uses=[DeviceUse("gpu-1", web.metadata.uid), DeviceUse("gone", web.metadata.uid)],
    )
    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [one]))

    def used(tx: Transaction) -> list[int]:
        root = root_name(CLUSTER, "n1")
        return [
            inventories.of_provider(tx, providers.get(tx, device_uuid(root, name)))[
                DEVICE_CLASS
            ].used
            for name in ("gpu-0", "gpu-1")
        ]

    assert ledger.read(used).result() == [0, 1]


def test_pods_may_use_what_their_node_has_no_more(ledger: Ledger) -> None:
    pods = [pod("train", "n1", requests={GPU: "2"})]
    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [seen(node("n1"), pods)]))
    assert held(ledger, "n1")["CUSTOM_NVIDIA_COM_GPU"] == 2
    assert capacity(ledger, "n1")["CUSTOM_NVIDIA_COM_GPU"] == 0
    done(ledger, lambda tx: nodes.enter(tx, CLUSTER, [seen(node("n1", more={GPU: "4"}), pods)]))
    assert capacity(ledger, "n1")["CUSTOM_NVIDIA_COM_GPU"] == 4
    assert is_sound(ledger)


def test_different_resources_have_different_classes() -> None:
    resources = [
        *("cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "hugepages-2mi"),
        *(
            "nvidia.com/gpu",
            "nvidia.com/g-pu",
            "nvidia.com/g_pu",
            "nvidia.com/g.pu",
            "nvidia/com.gpu",
        ),
        *("memory/bytes", "ephemeral.storage/bytes", "a.b/c", "a/b.c", "a-b/c", "A.b/c", "/pods"),
        *(f"{'x' * 250}.com/{'y' * 62}{end}" for end in "12"),
    ]
    found = [class_of_resource(each) for each in resources]
    assert len(set(found)) == len(resources)
    assert all(len(each) <= 255 and each.startswith("CUSTOM_") for each in found)
    assert class_of_resource("nvidia.com/gpu") == "CUSTOM_NVIDIA_COM_GPU"
