"""Owned objects: the specification's Service, StatefulSet and node pool, but where it errs."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from dovetail.machines.documents import MachineNodePool
from dovetail.machines.names import pool_name, stock_name
from dovetail.machines.objects import (
    is_contained,
    is_pool,
    pool_of,
    pool_spec_of,
    service_of,
    sleeper_request,
    stateful_set_of,
)
from dovetail.machines.snapshot import StockSettings
from dovetail.podfit.pod_sum import CPU, MEMORY
from tests.machines.building import changed, machine, shape

GROUP, NAME = "general-machine", "compute-xlarge-general-machine"
LABELS = {
    "imperator.tenzen-y.io/machine-group": "general-machine",
    "imperator.tenzen-y.io/machine-type": "compute-xlarge",
    "imperator.tenzen-y.io/pod-role": "reservation",
}
RESOURCES = {"cpu": "40000m", "memory": "128Gi", "nvidia.com/gpu": "2"}
EXPRESSIONS = [
    {
        "key": "imperator.tenzen-y.io/compute-xlarge",
        "operator": "In",
        "values": ["general-machine"],
    },
    {"key": "imperator.tenzen-y.io/node-pool", "operator": "In", "values": ["ready"]},
    {
        "key": "nvidia.com/gpu.product",
        "operator": "In",
        "values": ["NVIDIA-GeForce-RTX-3090"],
    },
]
TOLERATIONS = [
    {
        "key": "imperator.tenzen-y.io/compute-xlarge",
        "effect": "NoSchedule",
        "operator": "Equal",
        "value": "general-machine",
    },
    {
        "key": "imperator.tenzen-y.io/node-pool",
        "effect": "NoSchedule",
        "operator": "Equal",
        "value": "ready",
    },
]


def made(replicas: int = 1) -> Any:
    return stateful_set_of(shape("compute-xlarge"), GROUP, replicas, StockSettings())


def test_the_stateful_set_is_the_specifications() -> None:
    found = made()
    assert found["metadata"] == {"labels": LABELS}
    spec = found["spec"]
    assert spec["selector"] == {"matchLabels": LABELS}
    assert spec["replicas"] == 1
    assert spec["template"]["metadata"] == {"labels": LABELS}
    pod = spec["template"]["spec"]
    assert pod["tolerations"] == TOLERATIONS
    [container] = pod["containers"]
    assert (container["name"], container["image"]) == ("sleeper", "alpine:3.15.0")
    assert (container["command"], container["args"]) == (["sleep"], ["infinity"])
    assert container["resources"] == {"requests": RESOURCES, "limits": RESOURCES}


def test_inconsistency_8_type_comes_before_group_in_names() -> None:
    assert stock_name("compute-xlarge", GROUP) == NAME


def test_inconsistency_9_the_service_name_is_the_services() -> None:
    assert made()["spec"]["serviceName"] == NAME


def test_inconsistency_10_the_service_is_headless() -> None:
    assert service_of(shape("compute-xlarge"), GROUP) == {
        "metadata": {"labels": LABELS},
        "spec": {"type": "ClusterIP", "clusterIP": "None", "selector": LABELS},
    }


def test_inconsistency_11_the_gpu_label_is_the_machines() -> None:
    affinity = made()["spec"]["template"]["spec"]["affinity"]
    required = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required == {"nodeSelectorTerms": [{"matchExpressions": EXPRESSIONS}]}


def test_sleepers_wait_for_the_operator_and_end_at_once() -> None:
    spec = made()["spec"]
    pod = spec["template"]["spec"]
    assert (spec["podManagementPolicy"], spec["updateStrategy"]) == (
        "Parallel",
        {"type": "OnDelete"},
    )
    assert pod["schedulingGates"] == [{"name": "imperator.tenzen-y.io/stock"}]
    assert pod["terminationGracePeriodSeconds"] == 0
    assert "priorityClassName" not in pod, "nobody preempts stock, and stock preempts nobody"


def test_sleepers_pass_the_restricted_pod_security_standard() -> None:
    pod = made()["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    [container] = pod["containers"]
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_what_a_sleeper_asks_for_is_the_unit() -> None:
    amounts = dict(sleeper_request(shape("compute-xlarge"), GROUP, StockSettings()).amounts)
    assert (amounts[CPU], amounts[MEMORY], amounts["nvidia.com/gpu"]) == (40_000, 128 * 2**30, 2)


# -- the node pool -------------------------------------------------------------------------------


def pool(**meta: Any) -> MachineNodePool:
    """As it is read when it was written just so."""
    written = pool_of(pool_spec_of(machine().spec, GROUP))
    written["metadata"] |= meta
    return msgspec.convert(written, MachineNodePool)


def test_inconsistency_13_the_pool_says_its_machine_group() -> None:
    spec = pool_of(pool_spec_of(machine().spec, GROUP))["spec"]
    assert spec["machineGroup"] == "general-machine"
    assert list(spec) == ["machineGroup", "nodePool", "machineTypeStock"]


def test_the_pools_nodes_are_a_copy_of_the_machines() -> None:
    found = pool_of(pool_spec_of(machine().spec, GROUP))
    assert msgspec.convert(found, MachineNodePool).spec.node_pool == machine().spec.node_pool


def test_inconsistency_15_the_pool_is_named_after_the_machine() -> None:
    assert pool_name("general-machine") == "general-machine-node-pool"


def test_letter_b_the_group_of_the_pool_may_be_another_than_its_machines_name() -> None:
    found = machine(name="machine-with-gpus", group="gpu-machines")
    assert pool_name(found.metadata.name) == "machine-with-gpus-node-pool"
    assert pool_spec_of(found.spec, found.group).machine_group == "gpu-machines"


def test_defect_7_a_type_that_is_gone_is_in_the_stock_of_the_pool_no_more() -> None:
    spec = machine(changed({"machineTypes[2]": {**machine_type(1), "name": "other"}})).spec
    names = [each.name for each in pool_spec_of(spec, GROUP).machine_type_stock]
    assert names == ["compute-medium", "compute-xlarge", "other"]


def machine_type(position: int) -> Any:
    return msgspec.to_builtins(machine().spec.machine_types[position])


@pytest.mark.parametrize(
    "there",
    [
        pool(labels={}),
        pool(finalizers=[]),
        msgspec.structs.replace(pool(), spec=pool_spec_of(machine().spec, "other")),
        msgspec.structs.replace(
            pool(),
            spec=pool_spec_of(machine(changed({"nodePool[0].mode": "maintenance"})).spec, GROUP),
        ),
    ],
    ids=["labels", "finalizer", "group", "mode"],
)
def test_edits_of_a_pool_are_found(there: MachineNodePool) -> None:
    wanted = pool_spec_of(machine().spec, GROUP)
    assert is_pool(pool(), wanted)
    assert not is_pool(there, wanted)


# -- comparing -----------------------------------------------------------------------------------


def as_the_api_server_has_it() -> Any:
    """With what it fills in, and quantities as it writes them."""
    found = deepcopy(made())
    found["metadata"] |= {"name": NAME, "uid": "u", "generation": 1}
    found["spec"] |= {"revisionHistoryLimit": 10}
    pod = found["spec"]["template"]["spec"]
    pod |= {"dnsPolicy": "ClusterFirst", "restartPolicy": "Always"}
    quantities = {"cpu": "40", "memory": "137438953472", "nvidia.com/gpu": "2"}
    pod["containers"][0]["resources"] = {"requests": quantities, "limits": quantities}
    return found


def test_what_others_fill_in_and_how_quantities_are_written_makes_no_difference() -> None:
    assert is_contained(made(), as_the_api_server_has_it())


def change(path: list[Any], value: Any) -> Any:
    found = as_the_api_server_has_it()
    at = found["spec"]
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value
    return found


CONTAINER = ["template", "spec", "containers", 0]


@pytest.mark.parametrize(
    "there",
    [
        change(["replicas"], 2),
        change([*CONTAINER, "resources", "requests", "cpu"], "41"),
        change([*CONTAINER, "image"], "alpine:3.16.0"),
        change(["template", "spec", "tolerations"], TOLERATIONS[:1]),
        change(["template", "spec", "tolerations"], [*TOLERATIONS, TOLERATIONS[0]]),
        change(["template", "spec", "schedulingGates"], None),
    ],
    ids=["replicas", "amount", "image", "less", "more", "gone"],
)
def test_what_differs_is_found(there: Any) -> None:
    assert not is_contained(made(), there)


def test_only_amounts_are_quantities() -> None:
    assert is_contained({"requests": {"cpu": "1"}}, {"requests": {"cpu": "1000m"}})
    assert not is_contained({"labels": {"group": "1"}}, {"labels": {"group": "1000m"}})
