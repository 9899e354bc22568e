"""The API server refuses Machines that cannot work, with the field's path and what would be right.

What needs other objects (nodes, other Machines, holders) is for the policies and the operator.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
import yaml

from dovetail.kube import manifests
from dovetail.machines.documents import Machine
from dovetail.machines.names import RESERVED_TYPES
from tests.kube.manifests.machines.api import (
    MACHINES,
    install_kinds,
    machine_object,
    one_type,
    refusals,
    shaped,
)
from tests.support.kube.cluster import Cluster

GPU = {"type": "nvidia.com/gpu", "num": 1, "family": "ampere"}
TYPE = "spec.machineTypes[0]"
SHAPE = f"{TYPE}.spec"
WINDOW = {
    "name": "lecture",
    "start": "2027-04-05T09:00:00+09:00",
    "duration": "90m",
    "units": 1,
    "buyers": {"namespaces": ["course"]},
}


@pytest.fixture(scope="module")
def kinds(cluster: Cluster) -> Cluster:
    install_kinds(cluster)
    return cluster


def two_types(**more: Any) -> dict[str, Any]:
    spec = one_type()
    spec["machineTypes"] += one_type("large")["machineTypes"]
    return spec | more


def depending(**on: Any) -> dict[str, Any]:
    return shaped(dependence=on)


def serving(*nodes: tuple[str, list[str]], **more: Any) -> dict[str, Any]:
    pool = [
        {"name": name, "machineType": [{"name": each} for each in types]} for name, types in nodes
    ]
    return two_types(nodePool=pool, **more)


def in_a_window(**more: Any) -> dict[str, Any]:
    return one_type(windows=[WINDOW | more])


def selecting(operator: str, *values: str) -> dict[str, Any]:
    expression = {"key": "team", "operator": operator, "values": list(values)}
    return one_type(buyers={"namespaceSelector": {"matchExpressions": [expression]}})


BAD = {
    "gpu of no type": (shaped(gpu={"num": 1, "family": "ampere"}), f"{SHAPE}.gpu.type"),
    "gpu of an empty type": (shaped(gpu=GPU | {"type": ""}), f"{SHAPE}.gpu.type"),
    "gpu of another maker": (shaped(gpu=GPU | {"type": "amd.com/gpu"}), f"{SHAPE}.gpu.type"),
    "less than no gpu": (shaped(gpu=GPU | {"num": -1}), f"{SHAPE}.gpu.num"),
    "no selector": (shaped(gpu={"type": "nvidia.com/gpu", "num": 1}), f"{SHAPE}.gpu"),
    "two selectors": (shaped(gpu=GPU | {"product": "A100"}), f"{SHAPE}.gpu"),
    "a selector that no label has": (shaped(gpu=GPU | {"family": "a b"}), f"{SHAPE}.gpu.family"),
    "two types on a node": (serving(("n0", ["small", "large"])), "spec.nodePool"),
    "no type on a node": (serving(("n0", [])), "spec.nodePool[0].machineType"),
    "an unknown type": (serving(("n0", ["small"]), ("n1", ["huge"])), "spec.nodePool"),
    "a type twice": (
        {"nodePool": [], "machineTypes": one_type()["machineTypes"] * 2},
        "spec.machineTypes[1]",
    ),
    "a node twice": (serving(("n0", ["small"]), ("n0", ["large"])), "spec.nodePool[1]"),
    "an unknown mode": (
        two_types(nodePool=[{"name": "n0", "mode": "broken", "machineType": [{"name": "small"}]}]),
        "spec.nodePool[0].mode",
    ),
    "no quantity": (shaped(cpu="lots"), f"{SHAPE}.cpu"),
    "no cpu": (shaped(cpu=0), f"{SHAPE}.cpu"),
    "negative memory": (shaped(memory="-1Gi"), f"{SHAPE}.memory"),
    "no stock given": ({"nodePool": [], "machineTypes": [{"name": "a", "spec": {}}]}, TYPE),
    "negative stock": (one_type(available=-1), f"{TYPE}.available"),
    "a part of a unit": (one_type(available=1.5), f"{TYPE}.available"),
    "a host limit of nothing": (shaped(hostLimit=0), f"{SHAPE}.hostLimit"),
    "more than a host": (shaped(hostLimit=1.5), f"{SHAPE}.hostLimit"),
    "a parent that is not there": (
        depending(parent="huge", availableRatio=0.5),
        "spec.machineTypes",
    ),
    "its own parent": (depending(parent="small", availableRatio=0.5), "spec.machineTypes"),
    "no share of a parent": (
        depending(parent="large", availableRatio=0),
        f"{SHAPE}.dependence.availableRatio",
    ),
    "more than a parent": (
        depending(parent="large", availableRatio=2),
        f"{SHAPE}.dependence.availableRatio",
    ),
    "a cap of nothing": (one_type(caps={"perUser": 0}), f"{TYPE}.caps.perUser"),
    "no time": (one_type(maxDuration="soon"), f"{TYPE}.maxDuration"),
    "a time of nothing": (one_type(maxDuration="0m"), f"{TYPE}.maxDuration"),
    "a time in weeks": (one_type(announceBefore="1w"), f"{TYPE}.announceBefore"),
    "an unknown answer when sold out": (one_type(whenSoldOut="queue"), f"{TYPE}.whenSoldOut"),
    "an unknown end": (one_type(whenExpired="kill"), f"{TYPE}.whenExpired"),
    "an unknown way to count": (one_type() | {"counting": "twice"}, "spec.counting"),
    "buyers that nobody is": (one_type() | {"buyers": {}}, "spec.buyers"),
    "a namespace twice": (
        one_type(buyers={"namespaces": ["a", "a"]}),
        f"{TYPE}.buyers.namespaces[1]",
    ),
    "values to exist": (
        selecting("Exists", "a"),
        f"{TYPE}.buyers.namespaceSelector.matchExpressions[0].values",
    ),
    "no value to be in": (
        selecting("In"),
        f"{TYPE}.buyers.namespaceSelector.matchExpressions[0].values",
    ),
    "a start that is no time": (in_a_window(start="monday"), f"{TYPE}.windows[0].start"),
    "a window of no length": (in_a_window(duration="0h"), f"{TYPE}.windows[0].duration"),
    "a window of no units": (in_a_window(units=0), f"{TYPE}.windows[0].units"),
    "no rule": (in_a_window(rrule="every monday"), f"{TYPE}.windows[0].rrule"),
    "each second": (in_a_window(rrule="FREQ=SECONDLY"), f"{TYPE}.windows[0].rrule"),
    "a rule without a frequency": (in_a_window(rrule="BYDAY=MO"), f"{TYPE}.windows[0].rrule"),
    "a hold that is no time": (in_a_window(holdBefore="-1h"), f"{TYPE}.windows[0].holdBefore"),
    "a window twice": (one_type(windows=[WINDOW, WINDOW]), f"{TYPE}.windows[1]"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_machine_is_refused_with_the_path_of_the_field(kinds: Cluster, case: str) -> None:
    spec, path = BAD[case]
    said = refusals(kinds, machine_object(spec))
    assert any(field.startswith(path) for field in said), said


GOOD = {
    "no gpu": one_type(),
    "a gpu": shaped(gpu=GPU),
    "none of a gpu": shaped(gpu=GPU | {"num": 0}),
    "numbers instead of text": shaped(cpu=2, memory=4294967296),
    "text instead of a number": shaped(gpu=GPU | {"num": "1"}),
    "fractions": shaped(cpu="0.5", memory="1.5Gi"),
    "no stock": one_type(available=0),
    "several types on a node": serving(("n0", ["small", "large"]), severalTypesPerNode=True),
    "a type that no node serves": serving(("n0", ["small"])),
    "no nodes": two_types(nodePool=[]),
    "a host limit": shaped(hostLimit=0.5),
    "buyers": one_type(buyers={"namespaces": ["a"], "namespaceSelector": {}})
    | {"buyers": {"namespaceSelector": {"matchLabels": {"team": "a"}}}},
    "a selection": selecting("NotIn", "a"),
    "a lease": one_type(
        maxDuration="2d1h30m", announceBefore="0s", whenExpired="evict", whenSoldOut="refuse"
    ),
    "caps": one_type(caps={"perNamespace": 2, "perUser": 1}),
    "windows": in_a_window(rrule="BYDAY=MO,WE;FREQ=WEEKLY", timeZone="Asia/Tokyo", holdBefore="0m"),
    "the specification's way to count": one_type() | {"counting": "spec"},
}


@pytest.mark.parametrize("case", GOOD)
def test_a_good_machine_is_taken(kinds: Cluster, case: str) -> None:
    assert not refusals(kinds, machine_object(GOOD[case]))


def test_inconsistency_17_a_type_depends_on_another(kinds: Cluster) -> None:
    spec = two_types()
    spec["machineTypes"][0]["spec"]["dependence"] = {"parent": "large", "availableRatio": 0.5}
    assert not refusals(kinds, machine_object(spec))


@pytest.mark.parametrize("name", ["3090s", "Large", "a_b", "a.b", "a-", "", "a" * 51])
def test_letter_m_a_name_that_no_service_can_have_is_refused(kinds: Cluster, name: str) -> None:
    said = refusals(kinds, machine_object(one_type(name)))
    assert f"{TYPE}.name" in said


@pytest.mark.parametrize("name", sorted(RESERVED_TYPES))
def test_defect_8_a_key_that_means_something_else_is_no_type(kinds: Cluster, name: str) -> None:
    said = refusals(kinds, machine_object(one_type(name)))
    assert f"imperator.tenzen-y.io/{name} means something else" in said[f"{TYPE}.name"]


def test_a_refusal_says_what_would_be_right(kinds: Cluster) -> None:
    spec = serving(("n0", ["small"]), ("n1", ["small", "large"]))
    said = refusals(kinds, machine_object(spec))
    assert (
        "node n1 has several types: one only, unless spec.severalTypesPerNode is true"
        in (said["spec.nodePool"])
    )
    said = refusals(kinds, machine_object(one_type("3090s", spec={"cpu": "x", "memory": "1"})))
    assert "such as m-3090s" in said[f"{TYPE}.name"]
    assert "such as 6, 6000m or 48Gi" in said[f"{SHAPE}.cpu"]
    spec = serving(("n0", ["small"]), ("n1", ["huge"]))
    assert "node n1 serves a type" in refusals(kinds, machine_object(spec))["spec.nodePool"]


def test_a_name_leaves_room_for_that_of_its_pool(kinds: Cluster) -> None:
    assert not refusals(kinds, machine_object(name=".".join(["n" * 60] * 4)[:243]))
    said = refusals(kinds, machine_object(name=".".join(["n" * 61] * 4)[:244]))
    assert "at most 243 characters" in str(said)


def test_the_largest_machine_is_within_the_budget_of_the_rules(kinds: Cluster) -> None:
    names = [f"type-{n}" for n in range(64)]
    types = [one_type(name)["machineTypes"][0] for name in names]
    pool = [
        {"name": f"a-node-with-a-long-name-{n}", "machineType": [{"name": names[n % 64]}]}
        for n in range(5000)
    ]
    assert not refusals(kinds, machine_object({"nodePool": pool, "machineTypes": types}))
    pool[-1]["machineType"] = [{"name": "none"}]
    said = refusals(kinds, machine_object({"nodePool": pool, "machineTypes": types}))
    assert "a-node-with-a-long-name-4999" in said["spec.nodePool"]


EXAMPLES = """\
apiVersion: imperator.tenzen-y.io/v1alpha1
kind: Machine
metadata:
  name: machine-with-gpus
  labels:
    imperator.tenzen-y.io/machine-group: gpu-machines
spec:
  nodePool:
    - name: kind-control-plane
      mode: ready
      taint: false
      machineType:
        - name: compute-xmedium
  machineTypes:
    - name: compute-xmedium
      spec:
        cpu: 4000m
        memory: 12Gi
        gpu:
          type: nvidia.com/gpu
          num: 1
          family: ampere
      available: 1
status:
  conditions:
    - lastTransitionTime: "2021-07-24T09:08:39Z"
      status: "True"
      type: Ready
  availableMachines:
    - name: compute-xmedium
      usage:
        maximum: 4
        reserved: 3
        used: 1
        waiting: 0
"""


def test_documents_of_imperator_apply_unchanged_with_their_status(kinds: Cluster) -> None:
    """And kubectl, which looks for fields that are not there, has nothing to say."""
    applying = ("apply", "--server-side", "--dry-run=server", "-f", "-", "-o", "yaml")
    found = yaml.safe_load(kinds.kubectl(*applying, given=EXAMPLES))
    assert "status" not in found
    written = yaml.safe_load(EXAMPLES)
    assert found["spec"]["nodePool"] == written["spec"]["nodePool"]
    general = kinds.kubectl("create", "--dry-run=server", "-f", "-", given=machine_object())
    assert "created" in general


def test_what_is_not_said_is_filled_in(kinds: Cluster) -> None:
    spec = in_a_window()
    status, said = kinds.request("POST", f"{MACHINES}?dryRun=All", machine_object(spec))
    assert status == 201
    found = json.loads(said)["spec"]
    assert (found["counting"], found["severalTypesPerNode"]) == ("bound", False)
    assert (found["nodePool"][0]["mode"], found["nodePool"][0]["taint"]) == ("ready", False)
    (machine_type,) = found["machineTypes"]
    filled = {"whenSoldOut": "wait", "whenExpired": "announce", "announceBefore": "15m"}
    assert machine_type.items() >= filled.items()
    assert machine_type["windows"][0]["timeZone"] == "UTC"


def test_the_fields_are_those_that_the_operator_reads() -> None:
    """By the names on the wire, level by level."""
    crd, *_ = yaml.safe_load_all(manifests.text(["machines-crds"]))
    root = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    assert fields_of(root["spec"]) == struct_fields(Machine, "spec")
    assert set(root["status"]["properties"]) == struct_fields(Machine, "status").keys()


def fields_of(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type") == "array":
        return fields_of(schema["items"])
    return {name: fields_of(each) for name, each in schema.get("properties", {}).items()}


def struct_fields(struct: type, field: str) -> dict[str, Any]:
    found = next(each for each in msgspec.structs.fields(struct) if each.encode_name == field)
    return described(msgspec.inspect.type_info(found.type))


def described(info: Any) -> dict[str, Any]:
    if hasattr(info, "fields"):
        return {each.encode_name: described(each.type) for each in info.fields}
    if hasattr(info, "item_type"):
        return described(info.item_type)
    kinds = [described(each) for each in getattr(info, "types", ())]
    return next((each for each in kinds if each), {})
