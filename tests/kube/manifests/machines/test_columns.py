"""`kubectl get` shows what is sold of each type, and how the pool is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.kube.manifests.machines.api import install_kinds, machine_object
from tests.support.kube.cluster import Cluster

READY = {
    "type": "Ready",
    "status": "False",
    "reason": "StockShort",
    "message": "",
    "lastTransitionTime": "2027-01-01T00:00:00Z",
}


@pytest.fixture(scope="module")
def made(cluster: Cluster) -> Iterator[Cluster]:
    install_kinds(cluster)
    machine = machine_object(name="shown")
    pool = {
        "apiVersion": machine["apiVersion"],
        "kind": "MachineNodePool",
        "metadata": {"name": "shown-node-pool"},
        "spec": {
            "machineGroup": "general-machine",
            "nodePool": machine["spec"]["nodePool"],
            "machineTypeStock": [{"name": "compute-medium"}],
        },
    }
    for each in (machine, pool):
        cluster.kubectl("create", "-f", "-", given=each)
    yield cluster
    cluster.kubectl("delete", "machine/shown", "machinenodepool/shown-node-pool")


def write_status(cluster: Cluster, what: str, **status: Any) -> None:
    patching = ("patch", what, "--subresource=status", "--type=merge", "-p")
    cluster.kubectl(*patching, json.dumps({"status": status}))


def test_numbers_of_each_type_are_in_the_columns_of_a_machine(made: Cluster) -> None:
    summary = {
        "types": "compute-medium,compute-xlarge",
        "maximum": "4,1",
        "reserved": "3,0.5",
        "used": "1,0.5",
        "waiting": "0,2",
    }
    write_status(made, "machine/shown", summary=summary, conditions=[READY])
    header, row = made.kubectl("get", "mach", "shown").splitlines()
    assert re.sub(" +", " ", header) == "NAME GROUP TYPES MAX RESERVED USED WAITING READY AGE"
    assert row.split()[:-1] == ["shown", "general-machine", *summary.values(), "False"]
    _, wide = made.kubectl("get", "mach", "shown", "-o", "wide").splitlines()
    assert "StockShort" in wide


def test_inconsistency_14_a_pool_has_the_specifications_conditions(made: Cluster) -> None:
    nodes = [
        {"name": "michiru", "condition": "Ready"},
        {"name": "utaha", "condition": "Maintenance"},
        {"name": "eriri", "condition": "NotReady"},
    ]
    write_status(made, "mnp/shown-node-pool", nodePool=nodes, conditions=[READY])
    header, row = made.kubectl("get", "mnp", "shown-node-pool").splitlines()
    assert header.split() == ["NAME", "GROUP", "READY", "AGE"]
    assert row.split()[:-1] == ["shown-node-pool", "general-machine", "False"]


def test_letter_f_half_a_unit_can_be_used(made: Cluster) -> None:
    usage = {"maximum": 1, "reserved": 0, "used": 0.5, "waiting": 0}
    listed = [{"name": "compute-xlarge", "usage": usage, "free": 0}]
    write_status(made, "machine/shown", availableMachines=listed)
    used = "jsonpath={.status.availableMachines[0].usage.used}"
    assert made.kubectl("get", "machine", "shown", "-o", used) == "0.5"


def test_both_kinds_are_found_by_their_category(made: Cluster) -> None:
    listed = made.kubectl("get", "imperator", "-o", "name").split()
    assert set(listed) >= {
        "machine.imperator.tenzen-y.io/shown",
        "machinenodepool.imperator.tenzen-y.io/shown-node-pool",
    }
