"""The specification's own Machine on a real cluster: objects, marks and numbers, as guests come,
crash, end, linger and go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dovetail.machines.names import MACHINE_GROUP, MACHINE_TYPE, NODE_POOL, POD_ROLE, UNIT_GATE
from tests.kube.machines.bed import Bed, example_nodes, example_spec, machine_bed

GROUP = "general-machine"
DOMAIN = "imperator.tenzen-y.io/"


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with machine_bed(tmp_path_factory.mktemp("machines")) as running:
        running.cluster.apply(*example_nodes())
        running.create_machine(example_spec())
        running.await_ready()
        yield running


def owned(bed: Bed, path: str) -> Any:
    return bed.get(path.format("compute-xlarge-general-machine"))


def test_the_objects_of_a_type(bed: Bed) -> None:
    labels = {MACHINE_GROUP: GROUP, MACHINE_TYPE: "compute-xlarge", POD_ROLE: "reservation"}
    service = owned(bed, "/api/v1/namespaces/dovetail/services/{}")
    assert service["metadata"]["labels"] == labels
    assert service["spec"]["selector"] == labels
    assert (service["spec"]["type"], service["spec"]["clusterIP"]) == ("ClusterIP", "None")
    found = owned(bed, "/apis/apps/v1/namespaces/dovetail/statefulsets/{}")
    assert found["metadata"]["labels"] == labels
    spec = found["spec"]
    assert spec["selector"] == {"matchLabels": labels}
    assert spec["serviceName"] == service["metadata"]["name"]
    assert spec["replicas"] == 1
    template = spec["template"]
    assert template["metadata"]["labels"] == labels
    keys = (f"{DOMAIN}compute-xlarge", GROUP), (NODE_POOL, "ready")
    assert template["spec"]["tolerations"] == [
        {"key": key, "effect": "NoSchedule", "operator": "Equal", "value": value}
        for key, value in keys
    ]
    product = ("nvidia.com/gpu.product", "NVIDIA-GeForce-RTX-3090")
    terms = template["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert terms == [
        {
            "matchExpressions": [
                {"key": key, "operator": "In", "values": [value]} for key, value in (*keys, product)
            ]
        }
    ]
    (sleeper,) = template["spec"]["containers"]
    assert (sleeper["name"], sleeper["image"]) == ("sleeper", "alpine:3.15.0")
    assert (sleeper["command"], sleeper["args"]) == (["sleep"], ["infinity"])
    amounts = {"cpu": "40", "memory": "128Gi", "nvidia.com/gpu": "2"}
    assert sleeper["resources"] == {"requests": amounts, "limits": amounts}


def test_the_pool(bed: Bed) -> None:
    path = "/apis/imperator.tenzen-y.io/v1alpha1/machinenodepools/general-machine-node-pool"

    def told() -> list[tuple[str, str]]:
        rows = bed.get(path).get("status", {}).get("nodePool", [])
        return [(row["name"], row["condition"]) for row in rows]

    wanted = [("michiru", "Ready"), ("utaha", "Maintenance"), ("eriri", "Ready")]
    bed.await_that(lambda: told() == wanted, "health")
    pool = bed.get(path)
    assert pool["metadata"]["labels"] == {MACHINE_GROUP: GROUP}
    (owner,) = pool["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Machine", GROUP, True)
    assert pool["spec"]["machineGroup"] == GROUP
    assert pool["spec"]["nodePool"] == example_spec()["nodePool"]
    names = [each["name"] for each in pool["spec"]["machineTypeStock"]]
    assert names == ["compute-medium", "compute-xlarge", "compute-large"]


def test_the_marks_of_nodes(bed: Bed) -> None:
    xlarge = {f"{DOMAIN}compute-xlarge": GROUP, NODE_POOL: "ready"}
    medium = {f"{DOMAIN}compute-medium": GROUP, NODE_POOL: "ready"}
    assert bed.marks("michiru") == (xlarge, xlarge, GROUP)
    assert bed.marks("eriri") == (medium, medium, GROUP)
    assert bed.marks("utaha") == ({**medium, NODE_POOL: "maintenance"}, {}, GROUP)


def test_the_numbers_as_guests_come_crash_end_linger_and_go(bed: Bed) -> None:
    bed.await_usage("compute-medium", (4, 4, 0, 0))
    bed.await_usage("compute-xlarge", (1, 1, 0, 0))
    bed.await_usage("compute-large", (2, 0, 0, 0))
    assert bed.condition("Unserved") == (
        "True",
        "NoNode",
        "no node of the pool serves compute-large",
    )
    # A guest comes.
    status, guest = bed.create_guest("one", "compute-medium")
    assert status == 201, guest
    assert {"name": UNIT_GATE} in guest["spec"]["schedulingGates"]
    bed.await_usage("compute-medium", (4, 3, 1, 0))
    assert bed.replicas("compute-medium") == 3
    bed.await_that(lambda: bed.running() == ["one"], "guest running")
    assert bed.pods()["one"]["spec"]["nodeName"] == "eriri"
    # It crashes: it still holds its unit.
    bed.annotate("one", crash="true")
    bed.create_guest("two", "compute-medium")
    bed.await_usage("compute-medium", (4, 2, 2, 0))
    # One that is being created holds a unit, too.
    bed.create_guest("three", "compute-medium", annotations={"test/creating": "true"})
    bed.await_usage("compute-medium", (4, 1, 3, 0))
    # It ends: its unit is held again.
    bed.annotate("two", end="Succeeded")
    bed.await_usage("compute-medium", (4, 2, 2, 0))
    # One lingers while it goes, and then it is gone.
    bed.drop_pod("one", grace=3)
    assert bed.pods()["one"]["metadata"]["deletionTimestamp"]
    assert bed.usage("compute-medium") == {
        "maximum": 4,
        "reserved": 2,
        "used": 2,
        "waiting": 0,
    }
    bed.await_usage("compute-medium", (4, 3, 1, 0))
    bed.drop_pod("three")
    bed.drop_pod("two")
    bed.await_usage("compute-medium", (4, 4, 0, 0))
    assert bed.replicas("compute-medium") == 4


def test_a_guest_of_a_type_that_no_node_serves_is_told_so(bed: Bed) -> None:
    bed.create_guest("nowhere", "compute-large")
    bed.await_usage("compute-large", (2, 0, 0, 1))
    (row,) = bed.status()["waiting"]
    assert (row["pod"], row["reason"]) == ("nowhere", "NoNodeFits")
    bed.drop_pod("nowhere")
    bed.await_usage("compute-large", (2, 0, 0, 0))


def test_kubectl_shows_what_is_sold_to_whom_since_when_and_why_one_waits(bed: Bed) -> None:
    bed.create_guest("holder", "compute-xlarge")
    bed.await_usage("compute-xlarge", (1, 0, 1, 0))
    bed.create_guest("waits", "compute-xlarge")
    bed.await_usage("compute-xlarge", (1, 0, 1, 1))
    table = bed.cluster.kubectl("get", "machines").splitlines()
    assert table[0].split() == (
        ["NAME", "GROUP", "TYPES", "MAX", "RESERVED", "USED", "WAITING", "READY", "AGE"]
    )
    columns = table[1].split()
    assert columns[:3] == [GROUP, GROUP, "compute-medium,compute-xlarge,compute-large"]
    assert columns[3:8] == ["4,1,2", "4,0,0", "0,1,0", "0,1,0", "True"]
    told = bed.cluster.kubectl("describe", "machine", GROUP)
    for words in ("holder", "Since", "waits", "SoldOut", "the only unit of compute-xlarge is sold"):
        assert words in told
    bed.await_that(lambda: bed.events("SoldOut") == ["waits"], "event")
    bed.drop_pod("holder")
    bed.await_that(lambda: "waits" in bed.running(), "turn")
    bed.drop_pod("waits")
    bed.await_usage("compute-xlarge", (1, 1, 0, 0))
