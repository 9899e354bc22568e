"""The stock is proved to fit the pool, or the node that blocks it is named."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dovetail.machines.shapes import types_unserved
from dovetail.machines.validation import findings
from dovetail.podfit.objects import NodeSpec, Taint
from tests.machines.building import changed, machine, node
from tests.machines.validation.worlds import NODES, faults, world

AVAILABLE = "spec.machineTypes[0].available"


def plain(name: str, cpu: int, available: int, **dependence: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {"cpu": cpu, "memory": f"{cpu}Gi"}
    if dependence:
        shape["dependence"] = dependence
    return {"name": name, "spec": shape, "available": available}


def pool(**types: str) -> list[dict[str, Any]]:
    """Nodes and the types that each serves, separated by blanks."""
    return [
        {"name": name, "machineType": [{"name": each} for each in served.split()]}
        for name, served in types.items()
    ]


SMALL = {name: node(name, cpu=10, memory="64Gi", gpus=0) for name in ("a", "b")}
"""Ten CPUs each."""


def small_faults(types: list[dict[str, Any]], **nodes: str) -> list[tuple[str, str]]:
    spec = {"nodePool": pool(**nodes), "machineTypes": types, "severalTypesPerNode": True}
    found = findings(machine(spec), world(nodes=SMALL))
    return [(each.path, each.message) for each in found]


def test_defect_8_a_stock_that_cannot_fit_is_refused_and_the_blocking_node_named() -> None:
    assert small_faults([plain("large", 6, 2)], a="large", b="large") == []
    [(path, message)] = small_faults([plain("large", 6, 3)], a="large", b="large")
    assert path == AVAILABLE
    assert message.startswith("2 of 3 fit; node a comes nearest to one more: ")
    assert "cpu" in message


def test_units_are_counted_on_nodes_that_serve_their_type_only() -> None:
    types = [plain("large", 6, 2), plain("other", 1, 1)]
    [(path, message)] = small_faults(types, a="large", b="other")
    assert path == AVAILABLE
    assert message.startswith("1 of 2 fit; node a ")


def test_letter_d_the_mix_of_several_types_is_proved() -> None:
    """Each alone would fit: 2 x 6 and 2 x 4 CPUs fit on 10 and 10, and 2 x 6 and 2 x 5 do not."""
    fitting = [plain("large", 6, 2), plain("small", 4, 2)]
    assert small_faults(fitting, a="large small", b="large small") == []
    short = [plain("large", 6, 2), plain("small", 5, 2)]
    [(path, message)] = small_faults(short, a="large small", b="large small")
    assert path == "spec.machineTypes[1].available"
    assert message.startswith("0 of 2 fit; ")


def test_inconsistency_17_children_are_parts_of_their_parents_stock() -> None:
    """Two wholes fill both nodes, and their four halves are not beside but inside them."""
    types = [plain("whole", 10, 2), plain("half", 5, 4, parent="whole", availableRatio=0.5)]
    assert small_faults(types, a="whole", b="whole") == []


def test_inconsistency_17_a_child_alone_is_proved_by_itself() -> None:
    """Where no node serves the parent, the child's units are what has to fit."""
    types = [plain("whole", 10, 2), plain("half", 5, 4, parent="whole", availableRatio=0.5)]
    [(path, _)] = small_faults(types, a="half")
    assert path == "spec.machineTypes[1].available"


def test_inconsistency_18_a_type_that_no_node_serves_is_legal() -> None:
    """The specification's own compute-large; unless it depends on one that is served."""
    assert findings(machine(), world()) == ()
    assert types_unserved(machine().spec) == ("compute-large",)
    dependence = {"parent": "compute-xlarge", "availableRatio": 0.5}
    child = changed({"machineTypes[2].spec.dependence": dependence})
    assert types_unserved(machine(child).spec) == ()


def test_the_gpu_that_a_type_demands_is_on_some_node_that_serves_it() -> None:
    """Michiru has the product, but serves another type."""
    gpu = {"type": "nvidia.com/gpu", "num": 1, "product": "NVIDIA-GeForce-RTX-3090"}
    [(path, message)] = faults({"machineTypes[0].spec.gpu": gpu})
    assert path == "spec.machineTypes[0].spec.gpu"
    assert message == (
        "no node that serves compute-medium has the label"
        " nvidia.com/gpu.product=NVIDIA-GeForce-RTX-3090"
    )


def test_gpus_are_counted() -> None:
    """Utaha and eriri have eight each."""
    assert faults({"machineTypes[0].available": 16}) == []
    [(path, message)] = faults({"machineTypes[0].available": 17})
    assert path == AVAILABLE
    assert "16 of 17 fit" in message
    assert "nvidia.com/gpu" in message


@pytest.mark.parametrize("mode", ["ready", "maintenance"])
def test_nodes_in_maintenance_count(mode: str) -> None:
    """Else a node could not be put into maintenance while its stock is needed."""
    changes = {"machineTypes[0].available": 16, "nodePool[1].mode": mode}
    assert faults(changes) == []
    assert faults(changes, world(accepted=machine())) == []


def test_what_is_accepted_does_not_depend_on_how_nodes_are_just_now() -> None:
    cordoned = NodeSpec(
        unschedulable=True, taints=(Taint(key="node.kubernetes.io/not-ready", effect="NoExecute"),)
    )
    nodes = {name: replace(each, spec=cordoned) for name, each in NODES.items()}
    assert findings(machine(), world(nodes=nodes)) == ()


def test_marks_of_another_pool_are_not_looked_at() -> None:
    """They are replaced when the Machine is accepted."""
    key = "imperator.tenzen-y.io/node-pool"
    nodes = {
        name: replace(
            each, metadata=replace(each.metadata, labels={**each.metadata.labels, key: "not-ready"})
        )
        for name, each in NODES.items()
    }
    assert findings(machine(), world(nodes=nodes)) == ()


SHORT = machine(changed({"machineTypes[0].available": 20}))
"""Was accepted, until its nodes lost GPUs: sixteen are left."""


@pytest.mark.parametrize(
    "changes",
    [
        {"machineTypes[0].available": 20, "machineTypes[0].whenSoldOut": "refuse"},
        {"machineTypes[0].available": 18},
        {"machineTypes[0].available": 20, "nodePool[0].mode": "maintenance"},
    ],
)
def test_letter_j_a_change_that_asks_no_more_is_not_proved_again(changes: dict[str, Any]) -> None:
    assert faults(changes, world(accepted=SHORT)) == []


def without_eriri(changes: dict[str, Any]) -> dict[str, Any]:
    spec = changed(changes)
    del spec["nodePool"][2]
    return spec


def test_letter_j_a_change_that_asks_for_more_is() -> None:
    [(path, _)] = faults({"machineTypes[0].available": 21}, world(accepted=SHORT))
    assert path == AVAILABLE
    larger = {"machineTypes[0].available": 20, "machineTypes[0].spec.gpu.num": 2}
    [(path, _)] = faults(larger, world(accepted=SHORT))
    assert path == AVAILABLE
    [fault] = findings(
        machine(without_eriri({"machineTypes[0].available": 20})), world(accepted=SHORT)
    )
    assert fault.path == AVAILABLE


def test_letter_j_a_node_that_is_gone_may_leave_the_pool() -> None:
    """It held no unit any more: the stock is as short as before."""
    around = world(accepted=SHORT, without=["eriri"])
    assert findings(machine(without_eriri({"machineTypes[0].available": 20})), around) == ()


def test_the_proof_is_of_a_machine_without_other_faults() -> None:
    found = faults({"machineTypes[0].available": 99, "nodePool[0].mode": "x"})
    assert [path for path, _ in found] == ["spec.nodePool[0].mode"]
