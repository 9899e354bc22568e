"""Marks on nodes: what a node of a pool carries, what is taken away, and what is left alone."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dovetail.machines.documents import MachineSpec, PoolNode
from dovetail.machines.marks import (
    CONDITIONS,
    change_of,
    is_marked_node,
    marked,
    marks_of,
    state_of,
    tainted,
)
from dovetail.machines.names import DOMAIN, MACHINE_GROUP, NODE_POOL
from dovetail.machines.placement_rules import tolerations_of
from dovetail.machines.shapes import served_types, shapes_of
from dovetail.podfit.objects import Condition, Node, Taint
from tests.machines.building import changed, machine, node
from tests.machines.lab import kind, small

GROUP = "general-machine"
XLARGE, MEDIUM = f"{DOMAIN}/compute-xlarge", f"{DOMAIN}/compute-medium"
UNHEALTHY = ("not-ready", "unschedulable", "network-unavailable", "unreachable")


def entry_of(spec: MachineSpec, name: str) -> PoolNode:
    return next(each for each in spec.node_pool if each.name == name)


def marks(found: Node, spec: MachineSpec) -> Node:
    """The node once the node pool controller has seen to it."""
    entry = entry_of(spec, found.metadata.name)
    return marked(found, marks_of(spec, GROUP, entry, state_of(found, entry)))


def own_labels(found: Node) -> dict[str, str]:
    return {k: v for k, v in found.metadata.labels.items() if k.startswith(DOMAIN)}


def own_taints(found: Node) -> dict[str, str]:
    return {t.key: t.value for t in found.spec.taints if t.key.startswith(DOMAIN)}


def with_taints(found: Node, *taints: Taint) -> Node:
    return replace(found, spec=replace(found.spec, taints=taints))


def is_right(found: Node, spec: MachineSpec) -> bool:
    entry = entry_of(spec, found.metadata.name)
    return change_of(found, marks_of(spec, GROUP, entry, state_of(found, entry))) is None


def test_the_example_of_the_specification() -> None:
    spec = machine().spec
    michiru, utaha = marks(node("michiru"), spec), marks(node("utaha"), spec)
    assert michiru.metadata.annotations == {MACHINE_GROUP: GROUP}
    assert own_labels(michiru) == {XLARGE: GROUP, NODE_POOL: "ready"}
    assert own_taints(michiru) == {XLARGE: GROUP, NODE_POOL: "ready"}
    assert own_labels(utaha) == {MEDIUM: GROUP, NODE_POOL: "maintenance"}
    assert own_taints(utaha) == {}


def test_inconsistency_5_the_label_is_node_pool() -> None:
    assert NODE_POOL == "imperator.tenzen-y.io/node-pool"
    assert NODE_POOL in own_labels(marks(node("michiru"), machine().spec))


@pytest.mark.parametrize("name", UNHEALTHY)
def test_inconsistency_6_a_node_is_ready_no_more_when_it_becomes_not_ready(name: str) -> None:
    spec = machine().spec
    before = marks(node("michiru"), spec)
    after = with_taints(
        before,
        *before.spec.taints,
        Taint(key=f"node.kubernetes.io/{name}", effect="NoSchedule"),
    )
    assert not is_right(after, spec)
    assert own_labels(marks(after, spec))[NODE_POOL] == "not-ready"
    assert own_taints(marks(after, spec))[NODE_POOL] == "not-ready"


def test_inconsistency_6_so_says_its_condition_or_that_it_is_cordoned() -> None:
    found, entry = node("michiru"), entry_of(machine().spec, "michiru")
    gone = Condition(type="Ready", status="Unknown")
    assert state_of(found, entry) == "ready"
    silent = replace(found, status=replace(found.status, conditions=(gone,)))
    assert state_of(silent, entry) == "not-ready"
    cordoned = replace(found, spec=replace(found.spec, unschedulable=True))
    assert state_of(cordoned, entry) == "not-ready"
    assert state_of(None, entry) == "not-ready"


def test_inconsistency_7_the_value_changes_and_the_label_goes_with_the_node_alone() -> None:
    spec = machine().spec
    found = marks(node("utaha"), spec)
    assert own_labels(found)[NODE_POOL] == "maintenance"
    left = marked(found, None)
    assert own_labels(left) == {}
    assert not is_marked_node(left)


def test_inconsistency_14_maintenance_is_told_before_not_ready() -> None:
    spec = machine().spec
    ill = with_taints(node("utaha"), Taint(key="node.kubernetes.io/not-ready", effect="NoExecute"))
    assert CONDITIONS[state_of(ill, entry_of(spec, "utaha"))] == "Maintenance"
    assert set(CONDITIONS.values()) == {"Ready", "Maintenance", "NotReady"}


def test_vacuous_1_a_change_of_mode_changes_labels_and_taints() -> None:
    """Upstream's test of it changed copies, and so nothing."""
    before = marks(node("michiru"), machine().spec)
    spec = machine(changed({"nodePool[0].mode": "maintenance"})).spec
    assert not is_right(before, spec)
    after = marks(before, spec)
    assert own_labels(after) == {XLARGE: GROUP, NODE_POOL: "maintenance"}
    assert own_taints(after) == {XLARGE: GROUP, NODE_POOL: "maintenance"}
    assert own_labels(marks(after, machine().spec)) == own_labels(before)


def test_vacuous_2_a_change_of_taint_changes_taints_alone() -> None:
    before = marks(node("michiru"), machine().spec)
    spec = machine(changed({"nodePool[0].taint": False})).spec
    change = change_of(before, marks_of(spec, GROUP, entry_of(spec, "michiru"), "ready"))
    assert change is not None
    assert (change.is_marked, change.are_taints_right) == (True, False)
    after = marks(before, spec)
    assert own_taints(after) == {}
    assert own_labels(after) == own_labels(before)
    assert own_taints(marks(after, machine().spec)) == own_taints(before)


def test_vacuous_3_a_change_of_type_takes_the_old_ones_marks_away() -> None:
    before = marks(node("michiru"), machine().spec)
    spec = machine(changed({"nodePool[0].machineType[0].name": "compute-medium"})).spec
    change = change_of(before, marks_of(spec, GROUP, entry_of(spec, "michiru"), "ready"))
    assert change is not None
    assert change.stale_labels == (XLARGE,)
    after = marks(before, spec)
    assert own_labels(after) == own_taints(after) == {MEDIUM: GROUP, NODE_POOL: "ready"}


def test_defect_6_a_node_that_leaves_the_pool_is_cleaned_and_others_keys_stay() -> None:
    others = Taint(key="dedicated", value="db", effect="NoSchedule")
    found = marks(with_taints(node("michiru", labels={"zone": "east"}), others), machine().spec)
    change = change_of(found, None)
    assert change is not None
    assert change.marks is None
    assert set(change.stale_labels) == {XLARGE, NODE_POOL}
    left = marked(found, None)
    assert left.metadata.labels["zone"] == "east"
    assert left.spec.taints == (others,)
    assert change_of(left, None) is None


def test_defect_6_every_node_is_looked_at_by_itself() -> None:
    """Upstream's cleaning ended at the first node that was clean."""
    spec = machine().spec
    nodes = [node("clean"), marks(node("michiru"), spec), marks(node("eriri"), spec)]
    assert [change_of(each, None) is None for each in nodes] == [True, False, False]


def test_defect_6_keys_of_the_domain_go_whoever_wrote_them() -> None:
    stale = node("michiru", labels={f"{DOMAIN}/old-type": "other", "kept": "yes"})
    spec = machine().spec
    change = change_of(stale, marks_of(spec, GROUP, entry_of(spec, "michiru"), "ready"))
    assert change is not None
    assert change.stale_labels == (f"{DOMAIN}/old-type",)
    assert marks(stale, spec).metadata.labels["kept"] == "yes"


WANTED = {XLARGE: GROUP, NODE_POOL: "ready"}
OLD = "2026-01-01T00:00:00Z"


def written(**taints: Any) -> list[dict[str, str]]:
    return [{"key": key, "effect": "NoSchedule", **fields} for key, fields in taints.items()]


def test_defect_10_taints_that_are_right_are_not_written_again() -> None:
    there = written(**{key: {"value": value, "timeAdded": OLD} for key, value in WANTED.items()})
    assert tainted(there, WANTED) is None


def test_defect_10_what_is_right_keeps_its_time_when_another_changes() -> None:
    there = [
        {"key": "dedicated", "effect": "NoExecute", "timeAdded": OLD, "unknownField": "kept"},
        {"key": XLARGE, "value": GROUP, "effect": "NoSchedule", "timeAdded": OLD},
        {"key": NODE_POOL, "value": "not-ready", "effect": "NoSchedule", "timeAdded": OLD},
    ]
    assert tainted(there, WANTED) == [
        *there[:2],
        {"key": NODE_POOL, "value": "ready", "effect": "NoSchedule"},
    ]


def test_letter_a_taints_of_others_are_kept_and_ours_of_other_effects_are_others() -> None:
    there = [
        {"key": "dedicated", "effect": "NoSchedule"},
        {"key": XLARGE, "value": GROUP, "effect": "NoExecute"},
    ]
    assert tainted(there, {}) is None
    assert tainted([*there, {"key": XLARGE, "value": GROUP, "effect": "NoSchedule"}], {}) == there


HALVES = small(
    kind("whole", 4, 2),
    kind("half", 2, 4, spec={"dependence": {"parent": "whole", "availableRatio": 0.5}}),
    nodes={"a": "whole", "b": "half"},
)


def test_letter_g_nodes_that_serve_the_parent_carry_the_childrens_labels() -> None:
    spec = machine(HALVES).spec
    whole, half = f"{DOMAIN}/whole", f"{DOMAIN}/half"
    assert own_labels(marks(node("a"), spec)) == {whole: GROUP, half: GROUP, NODE_POOL: "ready"}
    assert own_labels(marks(node("b"), spec)) == {half: GROUP, NODE_POOL: "ready"}


SEVERAL = small(
    kind("large", 8, 1),
    kind("little", 4, 1),
    nodes={"a": ["large", "little"], "b": "large"},
    severalTypesPerNode=True,
)


@pytest.mark.parametrize("spec", [HALVES, SEVERAL], ids=["family", "several"])
@pytest.mark.parametrize("name", ["a", "b"])
def test_letter_d_units_of_every_type_that_a_node_serves_tolerate_its_taints(
    spec: dict[str, Any], name: str
) -> None:
    """Each type has its taint there, and units tolerate those of the types beside theirs."""
    found = machine(changed({"nodePool[0].taint": True, "nodePool[1].taint": True}, spec)).spec
    entry = entry_of(found, name)
    taints = marks_of(found, GROUP, entry, "ready").taints
    types = served_types(found, entry.types)
    assert taints == {NODE_POOL: "ready", **{f"{DOMAIN}/{each}": GROUP for each in types}}
    for each in types:
        tolerations = tolerations_of(shapes_of(found)[each], GROUP)
        assert set(taints.items()) <= {(one["key"], one["value"]) for one in tolerations}
