"""What would change if a specification were accepted: objects, marks, stock, and who keeps what."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dovetail.machines.documents import MachineNodePool, MachineShape
from dovetail.machines.names import MACHINE_GROUP
from dovetail.machines.preview.dry_run import DryRun, dry_run
from dovetail.machines.validation.world import World
from dovetail.podfit.objects import KubeObject, Service, StatefulSet
from tests.machines.building import machine
from tests.machines.lab import GROUP, Lab, kind, small

LABEL = "label imperator.tenzen-y.io"


def tried(lab: Lab, spec: dict[str, Any]) -> DryRun:
    """With all objects of the lab's own specification in place."""
    before = lab.snapshot()
    there: dict[type[KubeObject], dict[str, Any]] = {
        each: {} for each in (StatefulSet, Service, MachineShape, MachineNodePool)
    }
    for put in lab.plan().puts:
        there[put.kind][put.name] = msgspec.convert(lab.written(put), put.kind)
    new = machine(spec, uid="m", generation=2)
    snapshot = msgspec.structs.replace(
        before,
        machine=new,
        spec=new.spec,
        stateful_sets={**lab.stateful_sets, **there[StatefulSet]},
        services=there[Service],
        shapes=there[MachineShape],
        pool=next(iter(there[MachineNodePool].values())),
    )
    sold: dict[str, list[str]] = {}
    for uid, unit in lab.units.items():
        if not unit.is_stock:
            sold.setdefault(unit.type, []).append(lab.guests[uid].key)
    world = World(machines=(lab.machine,), nodes=lab.nodes, sold=sold, accepted=lab.machine)
    plan = lab.plan()
    found = dry_run(snapshot, world)
    assert lab.plan() == plan, "nothing was left behind in the table"
    return found


def test_faults_are_told_by_path_and_nothing_else_is() -> None:
    lab = Lab(small(kind("small"), nodes={"n1": "small"}))
    found = tried(lab, small(kind("small", cpu=0), nodes={"n1": "small"}))
    assert not found.is_accepted
    assert [each.path for each in found.faults] == [
        "spec.machineTypes[0].spec.cpu",
        "spec.machineTypes[0].spec.memory",
    ]
    assert (found.objects, found.nodes, found.stock) == ((), (), ())


def test_the_same_specification_changes_nothing() -> None:
    spec = small(kind("small"), nodes={"n1": "small"})
    lab = Lab(spec)
    found = tried(lab, spec)
    assert (found.faults, found.objects, found.nodes) == ((), (), ())
    assert [(each.type, each.verdict, each.before == each.after) for each in found.stock] == [
        ("small", "fits", True)
    ]


def test_a_new_machine_makes_its_objects_and_marks_its_nodes() -> None:
    spec = small(kind("small"), nodes={"n1": "small"})
    spec["nodePool"][0]["taint"] = True
    lab = Lab(small(nodes={"n1": []}))
    lab.set_spec(spec)
    bare = msgspec.structs.replace(
        lab.nodes["n1"],
        metadata=msgspec.structs.replace(
            lab.nodes["n1"].metadata, labels={"kubernetes.io/hostname": "n1"}, annotations={}
        ),
        spec=msgspec.structs.replace(lab.nodes["n1"].spec, taints=()),
    )
    lab.set_node(bare, mark=False)
    snapshot = msgspec.structs.replace(lab.snapshot(), stateful_sets={})
    found = dry_run(snapshot, World(nodes=lab.nodes))
    assert [(each.action, each.kind, each.name) for each in found.objects] == [
        ("create", "MachineNodePool", "general-machine-node-pool"),
        ("create", "MachineShape", "small-general-machine"),
        ("create", "Service", "small-general-machine"),
        ("create", "StatefulSet", "small-general-machine"),
    ]
    (node,) = found.nodes
    assert (node.name, node.removed) == ("n1", ())
    assert node.added == (
        f"annotation {MACHINE_GROUP}={GROUP}",
        f"{LABEL}/small={GROUP}",
        f"{LABEL}/node-pool=ready",
        f"taint imperator.tenzen-y.io/small={GROUP}",
        "taint imperator.tenzen-y.io/node-pool=ready",
    )
    assert [(each.after, each.verdict) for each in found.stock] == [({"n1": 2}, "fits")]


def test_more_units_change_replicas_and_where_stock_is() -> None:
    lab = Lab(small(kind("small", available=2), nodes={"n1": "small", "n2": "small"}))
    found = tried(lab, small(kind("small", available=6), nodes={"n1": "small", "n2": "small"}))
    assert [(each.action, each.kind, each.fields) for each in found.objects] == [
        ("change", "StatefulSet", ("spec.replicas: 2 -> 6",))
    ]
    (stock,) = found.stock
    assert (stock.wanted, stock.before, stock.verdict) == (6, {"n1": 2}, "fits")
    assert stock.after["n1"] + stock.after["n2"] == 6
    assert stock.after["n1"] >= 2, "what is held stays where it is"


def test_stock_that_would_be_short_names_the_blocking_node() -> None:
    lab = Lab(small(kind("small", available=1), nodes={"n1": "small"}))
    lab.occupy("n1", cpu="6")
    found = tried(lab, small(kind("small", available=3), nodes={"n1": "small"}))
    (stock,) = found.stock
    assert (stock.verdict, stock.wanted, stock.after) == ("short", 3, {"n1": 2})
    assert (stock.node, stock.words) == ("n1", "Insufficient cpu: wants 4, free 2 of 16, 2 short")


def test_types_that_go_take_their_objects_with_them_and_nodes_lose_their_marks() -> None:
    nodes = {"n1": "small", "n2": "large"}
    lab = Lab(small(kind("small"), kind("large", cpu=8), nodes=nodes))
    found = tried(lab, small(kind("small"), nodes={"n1": "small"}))
    assert found.objects[0].fields == (
        "spec.nodePool changes",
        "spec.machineTypeStock changes",
    )
    assert [(each.action, each.kind, each.name) for each in found.objects] == [
        ("change", "MachineNodePool", "general-machine-node-pool"),
        ("delete", "StatefulSet", "large-general-machine"),
        ("delete", "Service", "large-general-machine"),
        ("delete", "MachineShape", "large-general-machine"),
    ]
    (node,) = found.nodes
    assert (node.name, node.added) == ("n2", ())
    assert node.removed == (
        f"annotation {MACHINE_GROUP}={GROUP}",
        f"{LABEL}/large={GROUP}",
        f"{LABEL}/node-pool=ready",
    )


def test_guests_keep_their_units_whatever_becomes_of_their_node() -> None:
    lab = Lab(small(kind("small"), nodes={"n1": "small", "n2": "small"}))
    lab.sold("train", "small")
    closed = small(kind("small"), nodes={"n1": "small", "n2": "small"})
    closed["nodePool"][0]["mode"] = "maintenance"
    for spec, words in (
        (closed, "its node is in maintenance"),
        (small(kind("small"), nodes={"n2": "small"}), "its node leaves the pool"),
        (
            small(kind("small", available=0), nodes={"n1": "small", "n2": "small"}),
            "more units of small are sold than there would be",
        ),
    ):
        found = tried(lab, spec)
        (kept,) = found.guests
        assert (kept.pod, kept.type, kept.node, kept.words) == ("team/train", "small", "n1", words)


def test_a_field_that_changes_is_told_by_its_path() -> None:
    spec = small(kind("small"), nodes={"n1": "small", "n2": "small"})
    lab = Lab(spec)
    spec["nodePool"][1]["mode"] = "maintenance"
    (pool,) = tried(lab, spec).objects
    assert pool.fields == ("spec.nodePool[1].mode: ready -> maintenance",)


def test_those_who_wait_may_be_served_by_the_change() -> None:
    lab = Lab(small(kind("small", available=1), nodes={"n1": "small"}))
    lab.sold("first", "small")
    lab.ask("second", "small")
    found = tried(lab, small(kind("small", available=2), nodes={"n1": "small"}))
    assert [(each.pod, each.node) for each in found.sold] == [("team/second", "n1")]


def test_mixed_stock_that_fits_only_when_it_moves_is_proved() -> None:
    nodes: dict[str, str | list[str]] = {"n1": ["small", "large"], "n2": ["small", "large"]}
    lab = Lab(
        small(
            kind("small", available=2),
            kind("large", cpu=16, available=0),
            nodes=nodes,
            severalTypesPerNode=True,
        )
    )
    for ordinal, place in enumerate(("n1", "n2")):
        lab.move(f"small-general-machine-{ordinal}", place)
    found = tried(
        lab,
        small(
            kind("small", available=2),
            kind("large", cpu=16, available=1),
            nodes=nodes,
            severalTypesPerNode=True,
        ),
    )
    stock = {each.type: each for each in found.stock}
    assert {each.verdict for each in stock.values()} == {"fits"}
    (large,), (little,) = stock["large"].after, stock["small"].after
    assert {large, little} == {"n1", "n2"}


@pytest.mark.parametrize("available", [0, 2])
def test_a_type_that_no_node_serves_holds_nothing(available: int) -> None:
    spec = small(kind("small"), kind("none", available=available), nodes={"n1": "small"})
    lab = Lab(spec)
    stock = {each.type: each for each in tried(lab, spec).stock}
    assert (stock["none"].verdict, stock["none"].wanted) == ("unserved", 0)
