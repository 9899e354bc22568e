"""Charges of deployments: held where they were planned, and then where pods run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import pytest

from dovetail.core.errors import CapacityExceeded
from dovetail.intents.deployment import AppOnCluster, PlannedWorkload
from dovetail.ledger import Ledger, Transaction, claims
from dovetail.ledger.database.protocol import Operation
from dovetail.ledger.intents import charges, nodes
from dovetail.ledger.intents.charges import FollowedCharges, NodeGone
from dovetail.ledger.intents.node_names import consumer_uuid
from dovetail.ledger.intents.observed import DeviceUse
from dovetail.podfit.objects import Pod
from tests.ledger.intents.test_nodes import held, is_sound, names
from tests.support.intents.seen import gpus, node, pod, seen

CLUSTER = "p1+c1"
CPU = {"cpu": 2000, "pods": 1}

T = TypeVar("T")


def done(ledger: Ledger, operation: Operation[T]) -> T:
    return ledger.write(operation).result()


def placed(*workloads: PlannedWorkload, app: str = "fwall") -> AppOnCluster:
    return AppOnCluster(app=app, cluster=CLUSTER, workloads=workloads)


def workload(name: str, on: Mapping[str, int], **more: Any) -> PlannedWorkload:
    count = sum(on.values())
    return PlannedWorkload(kind="Deployment", name=name, count=count, amounts=CPU, nodes=on, **more)


def take(ledger: Ledger, placement: AppOnCluster, deployment: str = "d1") -> None:
    done(ledger, lambda tx: charges.take(tx, deployment, [placement], project="p", user="u"))


def follow(ledger: Ledger, placement: AppOnCluster) -> FollowedCharges:
    return done(ledger, lambda tx: charges.follow(tx, "d1", placement))


def run(ledger: Ledger, *pods: Pod, on: Iterable[str] = ("n1", "n2", "n3"), cpu: str = "4") -> None:
    """These are all the pods there are."""
    found = [seen(node(name, cpu=cpu), pods) for name in on]
    done(ledger, lambda tx: nodes.replace(tx, CLUSTER, found))


def ours(name: str, on: str, cpu: str = "2") -> Pod:
    return pod(name, on, deployment="d1", app="fwall", requests={"cpu": cpu})


def cpus(ledger: Ledger) -> dict[str, int]:
    found = {name: held(ledger, name).get("CUSTOM_MILLICPU", 0) for name in ("n1", "n2", "n3")}
    return {name: units for name, units in found.items() if units}


def test_pods_are_charged_where_they_were_planned_until_they_are_bound(ledger: Ledger) -> None:
    run(ledger)
    plan = placed(workload("core", {"n1": 2, "n2": 1}))
    take(ledger, plan)
    assert cpus(ledger) == {"n1": 4000, "n2": 2000}
    assert not follow(ledger, plan).has_changed

    run(ledger, ours("core-a-1", "n1"), ours("core-a-2", "n3"))
    found = follow(ledger, plan)
    assert found.has_changed
    assert cpus(ledger) == {"n1": 4000, "n3": 2000}, "the one that went to n3 left n2"
    assert [(each.key, each.node, each.was_planned) for each in found.pods] == [
        ("default/core-a-1", "n1", True),
        ("default/core-a-2", "n3", False),
    ]
    assert not follow(ledger, plan).has_changed
    run(ledger, ours("core-a-1", "n3"), ours("core-a-2", "n3"), ours("core-a-3", "n2"))
    follow(ledger, plan)
    assert cpus(ledger) == {"n2": 2000, "n3": 4000}
    assert is_sound(ledger)


def test_more_pods_than_planned_are_charged_as_they_are(ledger: Ledger) -> None:
    run(ledger)
    plan = placed(workload("core", {"n1": 1}))
    take(ledger, plan)
    run(ledger, ours("core-1", "n1"), ours("core-2", "n2"), ours("core-3", "n3", cpu="500m"))
    follow(ledger, plan)
    assert cpus(ledger) == {"n1": 2000, "n2": 2000, "n3": 500}


def test_a_pod_that_ended_leaves_its_charge_where_it_was_planned(ledger: Ledger) -> None:
    run(ledger)
    plan = placed(workload("core", {"n1": 1}))
    take(ledger, plan)
    run(ledger, ours("core-1", "n2"))
    follow(ledger, plan)
    assert cpus(ledger) == {"n2": 2000}
    run(ledger)
    follow(ledger, plan)
    assert cpus(ledger) == {"n1": 2000}, "its owner makes it anew, and nobody knows where"


def test_a_pod_that_runs_is_a_fact_even_on_a_node_that_is_promised(ledger: Ledger) -> None:
    run(ledger)
    plan = placed(workload("core", {"n1": 1}))
    take(ledger, plan)
    other = AppOnCluster(app="x", cluster=CLUSTER, workloads=(workload("x", {"n2": 2}),))
    take(ledger, other, "d2")
    run(ledger, ours("core-1", "n2"))
    found = follow(ledger, plan)
    assert found.is_overfull
    assert cpus(ledger) == {"n2": 6000}
    with pytest.raises(CapacityExceeded):
        take(ledger, placed(workload("y", {"n2": 1}), app="y"), "d3")


def test_workloads_are_told_apart_by_the_names_of_their_pods(ledger: Ledger) -> None:
    run(ledger)
    plan = placed(workload("api", {"n1": 1}), workload("api-server", {"n2": 1}))
    take(ledger, plan)
    run(ledger, ours("api-server-7d-x", "n3"))
    found = follow(ledger, plan)
    assert [each.workload for each in found.pods] == ["api-server"]
    assert cpus(ledger) == {"n1": 2000, "n3": 2000}


def test_a_plan_does_not_get_more_than_there_is(ledger: Ledger) -> None:
    run(ledger)
    take(ledger, placed(workload("core", {"n1": 2})))
    with pytest.raises(CapacityExceeded):
        take(ledger, placed(workload("core", {"n1": 1})), "d2")
    with pytest.raises(NodeGone, match="n9"):
        take(ledger, placed(workload("core", {"n9": 1})), "d2")
    assert cpus(ledger) == {"n1": 4000}


def test_what_is_given_back_while_pods_run_is_given_to_nobody_else(ledger: Ledger) -> None:
    run(ledger)
    plan = placed(workload("core", {"n1": 1}))
    take(ledger, plan)
    run(ledger, ours("core-1", "n1"))
    follow(ledger, plan)
    assert done(ledger, lambda tx: charges.release(tx, "d1", "fwall", CLUSTER))
    assert cpus(ledger) == {"n1": 2000}, "they are others' now"
    assert not follow(ledger, plan).has_changed
    run(ledger)
    assert cpus(ledger) == {}
    assert not done(ledger, lambda tx: charges.release(tx, "d1", "fwall", CLUSTER))


def test_a_charge_on_a_node_that_is_gone_waits_for_it(ledger: Ledger) -> None:
    run(ledger)
    plan = placed(workload("core", {"n1": 1, "n2": 1}))
    take(ledger, plan)
    run(ledger, ours("core-1", "n2"), on=("n2", "n3"))
    follow(ledger, plan)
    assert held(ledger, "n1") == {"CUSTOM_MILLICPU": 2000, "CUSTOM_PODS": 1}
    run(ledger, ours("core-1", "n2"))
    assert cpus(ledger) == {"n1": 2000, "n2": 2000}
    run(ledger, on=("n2", "n3"))
    done(ledger, lambda tx: charges.release(tx, "d1", "fwall", CLUSTER))
    assert names(ledger) == ["p1+c1/n2", "p1+c1/n3"], "what it kept on record goes with it"


def test_devices_are_charged_as_pods_have_them(ledger: Ledger) -> None:
    def enter(*uses: DeviceUse, pods: Iterable[Pod] = ()) -> None:
        found = [
            seen(node("n1"), pods, devices=gpus("n1", "a", "b", "c"), uses=uses),
            seen(node("n2"), pods, devices=gpus("n2", "d")),
        ]
        done(ledger, lambda tx: nodes.replace(tx, CLUSTER, found))

    def charged() -> set[str]:
        def read(tx: Transaction) -> set[str]:
            found = claims.of_consumer(tx, consumer_uuid("d1", "fwall", CLUSTER))
            assert found is not None
            uuids = [each.provider_uuid for each in found.held]
            rows = tx.rows(
                f"SELECT name FROM providers WHERE uuid IN ({','.join('?' * len(uuids))})", uuids
            )
            return {name.removeprefix("p1+c1/") for (name,) in rows}

        return ledger.read(read).result()

    enter()
    plan = placed(workload("core", {"n1": 2}, devices={"n1": ("a", "b")}))
    take(ledger, plan)
    assert charged() == {"n1", "n1/a", "n1/b"}
    pods = [ours("core-1", "n1")]
    enter(pods=pods)
    follow(ledger, plan)
    assert charged() == {"n1", "n1/a", "n1/b"}, "nobody tells which it has"
    enter(DeviceUse("c", "uid-core-1"), pods=pods)
    follow(ledger, plan)
    assert charged() == {"n1", "n1/c", "n1/a"}
    pods = [ours("core-1", "n1"), ours("core-2", "n2")]
    enter(DeviceUse("c", "uid-core-1"), pods=pods)
    follow(ledger, plan)
    assert charged() == {"n1", "n1/c", "n2"}
    assert is_sound(ledger)
