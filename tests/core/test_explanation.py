"""One explanation: all finders fill the same shape and speak the same tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jsonschema
import msgspec
import pytest

from dovetail.core.device import Device
from dovetail.core.explanation import Explanation, Reason, document
from dovetail.core.request import Group, Request
from dovetail.core.selectors.condition_text import read
from dovetail.devices.classes.documents import DeviceClass
from dovetail.devices.classes.explain import explain_fleet
from dovetail.engine.explain import (
    Diagnosis,
    HostFindings,
    Work,
    findings,
    funnel,
    nearest,
    relaxations,
)
from dovetail.machines.explaining.guest import explain_guest
from dovetail.node.admission.admission_log import AdmissionRecord, ResourceRecord
from dovetail.node.admission.explain import explanation_of
from dovetail.node.common import reasons
from dovetail.node.common.cpus import CpuSet
from dovetail.node.hints import Hint, TopologyOptions, TopologyPolicy, explain
from tests.engine.answers import loaded
from tests.engine.forest import grow, node
from tests.machines.lab import Lab, kind, small
from tests.podfit.building import Fleet, pod
from tests.podfit.building import node as pods_node
from tests.support.paths import ROOT

T = TypeVar("T")

SCHEMA = msgspec.json.schema(Explanation)


def done(work: Work[T]) -> T:
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def of_candidates() -> Explanation:
    snapshot = loaded(grow(node("host1", node("numa0", VCPU=8), node("numa1", VCPU=4))))
    request = Request(groups=(Group(suffix="_VM", resources={"VCPU": 10}),))
    hosts = [
        HostFindings(int(snapshot.tree_start.values[tree]), done(findings(snapshot, request, tree)))
        for tree in done(nearest(snapshot, request, 5))
    ]
    rows = {row for host in hosts for one in host.findings if (row := one.row) is not None}
    diagnosis = Diagnosis(
        hosts=1,
        fitting=0,
        could=0,
        funnel=done(funnel(snapshot, request)),
        nearest=hosts,
        relaxations=done(relaxations(snapshot, request, [])),
        uuids={row: snapshot.uuid(row) for row in rows | {host.root for host in hosts}},
    )
    return diagnosis.explanation({}, lambda _: "resources_VM=VCPU:8")


def of_device_class() -> Explanation:
    large = DeviceClass("large", (read("Kind in (gpu),memory>=30G"),))
    small = Device(node="n1", name="g0", kind="gpu", units=1, properties={"memory": "16G"})
    return explain_fleet(large, [small]).explanation


def of_pod_on_nodes() -> Explanation:
    fleet = Fleet([pods_node("small", cpu="1"), pods_node("cordoned", unschedulable=True)])
    return fleet.verdict(pod("p", requests={"cpu": "2"})).explanation()


def of_numa_hints() -> Explanation:
    nodes = CpuSet(range(2))
    hints = {"cpu": [Hint(1, preferred=True)], "memory": [Hint(2, preferred=True)]}
    distances = {a: {b: 10 if a == b else 20 for b in nodes} for a in nodes}
    return explain(TopologyPolicy.RESTRICTED, TopologyOptions(), hints, nodes, distances)


def of_admission() -> Explanation:
    record = AdmissionRecord(
        uid="u",
        namespace="default",
        name="p",
        at=0.0,
        result="rejected",
        reason="plugin_refused",
        words="4 CPUs are wanted, 2 are free",
        resources=[ResourceRecord(resource="cpu", container="main", requested="4")],
    )
    return explanation_of(record)


def of_guest() -> Explanation:
    lab = Lab(small(kind("small", available=1), nodes={"n1": "small"}))
    lab.sold("first", "small")
    return explain_guest(lab.snapshot(), lab.ask("second", "small"))


EXPLAINERS: dict[str, Callable[[], Explanation]] = {
    "candidates": of_candidates,
    "device class": of_device_class,
    "pod on nodes": of_pod_on_nodes,
    "guest of a machine": of_guest,
    "NUMA hints": of_numa_hints,
    "admission": of_admission,
}


def closed(schema: Any) -> Any:
    """The same, but members that it does not name are faults."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(each) for name, each in schema.items()}
    return found | {"additionalProperties": False} if found.get("type") == "object" else found


def shown_by(explainer: str) -> Any:
    """As it goes over the wire."""
    return msgspec.json.decode(msgspec.json.encode(document(EXPLAINERS[explainer]())))


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_every_explainer_fills_the_one_shape(explainer: str) -> None:
    shown = shown_by(explainer)
    jsonschema.validate(shown, closed(SCHEMA))
    assert msgspec.convert(shown, Explanation) == EXPLAINERS[explainer]()
    assert shown["summary"]
    assert shown["funnel"]
    assert all(each["findings"] for each in shown["nearest"])


@pytest.mark.parametrize("explainer", EXPLAINERS)
def test_every_explainer_speaks_the_one_vocabulary(explainer: str) -> None:
    shown = shown_by(explainer)
    findings_shown = [one for place in shown["nearest"] for one in place["findings"]]
    changes = [one for each in shown["relaxations"] for one in each["changes"]]
    tokens = {one["reason"] for one in (*shown["funnel"], *findings_shown, *changes)}
    assert tokens
    assert tokens <= {reason.value for reason in Reason}


def test_what_candidates_say_keeps_its_keys() -> None:
    """Programs read these since version 1 of /dovetail/v1/explain."""
    shown = shown_by("candidates")
    assert {"verdict", "summary", "hosts", "fitting", "funnel", "nearest", "relaxations"} <= set(
        shown
    )
    assert set(shown["funnel"][0]) == {"reason", "group", "constraint", "left", "words"}
    (place,) = shown["nearest"]
    assert set(place) == {"name", "uuid", "fits", "findings"}
    assert place["findings"][0] == {
        "reason": "amount",
        "group": "_VM",
        "constraint": "VCPU:10",
        "met": False,
        "ever": False,
        "provider": place["findings"][0]["provider_uuid"],
        "provider_uuid": place["findings"][0]["provider_uuid"],
        "words": f"VCPU on {place['findings'][0]['provider']} (group _VM): "
        "wants 10, free 8 of 8, 2 short",
        "wanted": 10,
        "free": 8,
        "capacity": 8,
        "short": 2,
    }
    assert shown["relaxations"] == [
        {
            "changes": [{"reason": "amount", "group": "_VM", "from": "VCPU:10", "to": "VCPU:8"}],
            "hosts": 1,
            "query": "resources_VM=VCPU:8",
            "words": "1 host fits if VCPU:10 (group _VM) becomes 8",
            "vanishing": [],
            "smallest": True,
        }
    ]


def test_what_the_agent_refuses_for_is_in_the_vocabulary() -> None:
    constants = [value for name, value in vars(reasons).items() if name.isupper()]
    tokens = {each for each in constants if isinstance(each, str)}
    assert len(tokens) == 17
    assert tokens <= {reason.value for reason in Reason}


def test_every_token_is_explained_in_the_documentation() -> None:
    pages = "".join(
        (ROOT / "docs" / name).read_text(encoding="utf-8")
        for name in ("explain.md", "node-agent.md")
    )
    assert [reason.value for reason in Reason if f"`{reason.value}`" not in pages] == []
