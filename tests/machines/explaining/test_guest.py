"""Why a guest waits, by every rule, and what would help: as the next plan would do it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dovetail.core.explanation import Explanation, Reason, Verdict
from dovetail.machines.explaining.guest import explain_guest, explain_without_machine
from dovetail.machines.names import INJECT_RESOURCE, UNIT_GROUP_SIZE
from dovetail.podfit.objects import Taint
from tests.machines.building import machine, namespace, node
from tests.machines.lab import Lab, kind, opted_in, small

ONE_NODE = {"n1": "small"}


def explained(lab: Lab, name: str) -> Explanation:
    return explain_guest(lab.snapshot(), lab.guests[name])


def blocking(found: Explanation) -> Reason | None:
    """The first stage after which no node is left."""
    return next((stage.reason for stage in found.funnel if not stage.left), None)


def helps(found: Explanation) -> list[str]:
    return [each.words for each in found.relaxations]


def test_a_guest_with_a_unit_is_told_where_since_when_and_until_when() -> None:
    lab = Lab(small(kind("small", maxDuration="8h"), nodes=ONE_NODE))
    lab.sold("train", "small")
    found = explained(lab, "train")
    assert found.verdict is Verdict.FITS
    assert found.summary == (
        "team/train has its unit of small, on n1 since 2026-11-16T12:00:00Z"
        " until 2026-11-16T20:00:00Z."
    )


def test_a_guest_that_is_about_to_be_sold_a_unit_fits() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    lab.ask("train", "small")
    found = explained(lab, "train")
    assert (found.verdict, found.fitting, found.total) == (Verdict.FITS, 1, 1)
    assert found.summary == "team/train can have a unit of small now, on n1."
    assert found.relaxations == ()


def test_sold_out_names_the_holders_and_what_would_help() -> None:
    lab = Lab(
        small(
            kind("small", available=2),
            kind("large", cpu=8, available=1),
            kind("tiny", cpu=1, available=1),
            nodes={"n1": "small", "n2": "large", "n3": "tiny"},
        )
    )
    for name in ("first", "second"):
        lab.sold(name, "small")
    lab.ask("third", "small")
    found = explained(lab, "third")
    assert (found.verdict, blocking(found)) == (Verdict.NOT_NOW, Reason.STOCK)
    assert found.summary == "team/third waits: all 2 units of small are sold."
    assert [(place.name, [one.words for one in place.findings]) for place in found.nearest] == [
        ("n1", ["no unit of small is left; here they are held by team/first, team/second"])
    ]
    assert helps(found) == [
        "1 node fits if it is of type large (cpu 8, memory 32Gi)",
        "1 node fits if team/first gives its unit back",
        "1 node fits if there are 3 units of small",
    ]
    assert [each.query for each in found.relaxations] == [
        "imperator.tenzen-y.io/machine-type=large",
        "",
        "spec.machineTypes[0].available=3",
    ]


def test_a_node_that_is_sold_out_and_full_says_both() -> None:
    lab = Lab(small(kind("small", cpu=8, available=2), nodes=ONE_NODE))
    for name in ("first", "second"):
        lab.sold(name, "small")
    lab.ask("third", "small")
    (place,) = explained(lab, "third").nearest
    assert [one.reason for one in place.findings] == [Reason.STOCK, Reason.AMOUNT]


def test_a_type_that_no_node_serves() -> None:
    lab = Lab(small(kind("small"), kind("none"), nodes=ONE_NODE))
    lab.ask("train", "none")
    found = explained(lab, "train")
    assert (found.verdict, blocking(found)) == (Verdict.NEVER, Reason.POOL_NODE)
    assert found.summary.endswith("nothing in use: no node of the pool serves none.")


def test_more_units_help_only_where_there_is_room_for_them() -> None:
    lab = Lab(small(kind("small", cpu=8, available=2), nodes=ONE_NODE))
    for name in ("first", "second"):
        lab.sold(name, "small")
    lab.ask("third", "small")
    assert helps(explained(lab, "third")) == ["1 node fits if team/first gives its unit back"]


def test_of_those_who_share_a_stock_the_fewest_are_named() -> None:
    """Who has a whole unit; else those who have the parts of one."""
    half = kind("half", 2, 4, spec={"dependence": {"parent": "whole", "availableRatio": 0.5}})
    spec = small(kind("whole", 4, 2), half, nodes={"n1": "whole", "n2": "whole"})
    lab = Lab(spec, *(node(name, cpu=4, gpus=0) for name in ("n1", "n2")))
    for name in ("first", "second"):
        lab.sold(name, "half")
    lab.sold("all", "whole")
    lab.ask("next", "whole")
    assert helps(explained(lab, "next")) == ["1 node fits if team/all gives its unit back"]
    lab.end("all")
    lab.end("next")
    for name in ("third", "fourth"):
        lab.sold(name, "half")
    lab.ask("next", "whole")
    assert helps(explained(lab, "next")) == [
        "1 node fits if team/first, team/second give their units back"
    ]


def test_those_ahead_in_the_line_are_served_first() -> None:
    lab = Lab(small(kind("small", available=1), nodes=ONE_NODE))
    lab.sold("holder", "small")
    lab.ask("early", "small", minutes_ago=50)
    lab.ask("late", "small", minutes_ago=40)
    lab.ask("urgent", "small", minutes_ago=5, priority=100)
    late = explained(lab, "late")
    assert late.summary.endswith(
        "the only unit of small is sold. 2 guests of its type wait before it."
    )
    assert helps(late) == ["1 node fits if there are 4 units of small"]
    assert "1 node fits if there are 2 units of small" in helps(explained(lab, "urgent"))


def test_a_lease_tells_when_a_unit_comes_back() -> None:
    lab = Lab(small(kind("small", available=1, maxDuration="2h"), nodes=ONE_NODE))
    lab.sold("holder", "small")
    lab.ask("next", "small", minutes_ago=20)
    lab.ask("after", "small", minutes_ago=10)
    words = "team/holder gives its unit back: the lease ends at 2026-11-16T14:00:00Z"
    assert f"1 node fits if {words}" in helps(explained(lab, "next"))
    assert not any("lease" in each for each in helps(explained(lab, "after")))
    (place,) = explained(lab, "next").nearest
    assert place.findings[0].words.endswith("held by team/holder until 2026-11-16T14:00:00Z")


def test_of_a_cap_own_units_and_the_cap_are_named() -> None:
    lab = Lab(small(kind("small", available=3, caps={"perNamespace": 1}), nodes=ONE_NODE))
    lab.sold("stranger", "small", namespace="other")
    lab.sold("mine", "small")
    lab.ask("more", "small")
    found = explained(lab, "more")
    assert (found.verdict, blocking(found)) == (Verdict.NOT_NOW, Reason.CAP)
    assert helps(found) == [
        "1 node fits if team/mine gives its unit back",
        "1 node fits if the cap perNamespace is 2",
    ]


@pytest.mark.parametrize(
    ("of_machine", "of_type", "path"),
    [
        (None, {"namespaces": ["other"]}, "spec.machineTypes[0].buyers.namespaces"),
        ({"namespaces": ["other"]}, None, "spec.buyers.namespaces"),
        (
            {"namespaces": []},
            {"namespaces": []},
            "spec.machineTypes[0].buyers.namespaces=team spec.buyers.namespaces",
        ),
    ],
)
def test_who_may_not_buy_never_will_unless_buyers_change(
    of_machine: dict[str, Any] | None, of_type: dict[str, Any] | None, path: str
) -> None:
    lab = Lab(small(kind("small", buyers=of_type), nodes=ONE_NODE, buyers=of_machine))
    lab.ask("train", "small")
    found = explained(lab, "train")
    assert (found.verdict, blocking(found)) == (Verdict.NEVER, Reason.BUYER)
    assert found.summary == (
        "team/train cannot be served, even with nothing in use:"
        " namespace 'team' is not among the buyers of small."
    )
    assert [each.query for each in found.relaxations] == [f"{path}=team"]


def test_a_window_tells_when_it_ends() -> None:
    window = {
        "name": "course",
        "start": "2026-11-16T11:00:00Z",
        "duration": "4h",
        "units": 2,
        "buyers": {"namespaces": ["other"]},
    }
    lab = Lab(small(kind("small", windows=[window]), nodes=ONE_NODE))
    lab.ask("train", "small")
    found = explained(lab, "train")
    assert (found.verdict, blocking(found)) == (Verdict.NOT_NOW, Reason.WINDOW)
    assert helps(found) == [
        "1 node fits if window 'course' is over, at 2026-11-16T15:00:00Z",
        "1 node fits if there are 3 units of small",
    ]


def test_an_incomplete_unit_group_waits_for_its_pods() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    lab.ask("one", "small", unit_group=("job", 2))
    found = explained(lab, "one")
    assert (found.verdict, blocking(found)) == (Verdict.NOT_NOW, Reason.UNIT_GROUP)
    assert helps(found) == [
        "1 node fits if unit group 'job' has no more than 1 of its pods",
        "1 node fits if 1 more pod of unit group 'job' comes",
    ]


def test_a_unit_group_that_is_too_large_is_told_what_would_fit() -> None:
    lab = Lab(small(kind("small", available=2), nodes=ONE_NODE))
    for name in ("a", "b", "c"):
        lab.ask(name, "small", unit_group=("job", 3))
    found = explained(lab, "a")
    assert (found.verdict, found.funnel[-1].reason) == (Verdict.NEVER, Reason.UNIT_GROUP)
    assert "unit group 'job' gets all units or none" in found.summary
    assert [each.query for each in found.relaxations] == [
        f"{UNIT_GROUP_SIZE}=2",
        "spec.machineTypes[0].available=3",
    ]


def test_the_pods_own_demands_are_found_and_dropped() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    wants = {"key": "zone", "operator": "In", "values": ["x"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [wants]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    lab.ask("selects", "small", nodeSelector={"disk": "fast"})
    lab.ask("likes", "small", affinity=affinity)
    lab.ask("both", "small", nodeSelector={"disk": "fast"}, affinity=affinity)
    found = explained(lab, "selects")
    assert (found.verdict, blocking(found)) == (Verdict.NEVER, Reason.NODE_AFFINITY)
    assert helps(found) == ["1 node fits if its nodeSelector disk=fast is dropped"]
    assert helps(explained(lab, "likes")) == ["1 node fits if its own node affinity is dropped"]
    assert helps(explained(lab, "both")) == []


def test_a_taint_of_others_can_be_tolerated() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    tainted = lab.nodes["n1"]
    taints = (*tainted.spec.taints, Taint(key="repair", value="soon", effect="NoSchedule"))
    spec = msgspec.structs.replace(tainted.spec, taints=taints)
    lab.set_node(msgspec.structs.replace(tainted, spec=spec))
    lab.ask("train", "small")
    assert helps(explained(lab, "train")) == [
        "1 node fits if it tolerates the taint repair=soon:NoSchedule of node n1"
    ]


def test_pods_that_must_not_share_a_node_wait_for_each_other() -> None:
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"app": "db"}},
    }
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    for name in ("one", "two"):
        pod = lab.ask(name, "small", affinity=apart)
        labels = {**pod.metadata.labels, "app": "db"}
        meta = msgspec.structs.replace(pod.metadata, labels=labels)
        lab.guests[name] = msgspec.structs.replace(pod, metadata=meta)
    before = explained(lab, "two")
    lab.sell()
    for found in (before, explained(lab, "two")):
        assert (found.verdict, blocking(found)) == (Verdict.NOT_NOW, Reason.POD_ANTI_AFFINITY)
    assert helps(found) == ["1 node fits if team/one gives its unit back"]


def test_nodes_that_are_away_would_help_when_they_come_back() -> None:
    spec = small(kind("small"), nodes={"n1": "small", "n2": "small"})
    spec["nodePool"][0]["mode"] = "maintenance"
    lab = Lab(spec)
    cordoned = msgspec.structs.replace(lab.nodes["n2"].spec, unschedulable=True)
    lab.set_node(msgspec.structs.replace(lab.nodes["n2"], spec=cordoned))
    lab.ask("train", "small")
    found = explained(lab, "train")
    assert (found.verdict, blocking(found)) == (Verdict.NOT_NOW, Reason.POOL_NODE)
    assert [place.findings[0].words for place in found.nearest] == [
        "is in maintenance: nothing is sold there",
        "is not ready, or cordoned",
    ]
    assert helps(found) == ["1 node fits if node n1 leaves maintenance"]


def test_room_that_others_took_is_told_by_amounts() -> None:
    lab = Lab(small(kind("small", cpu=8), nodes=ONE_NODE))
    lab.sold("first", "small")
    lab.occupy("n1", cpu="6")
    lab.ask("second", "small")
    found = explained(lab, "second")
    assert (found.verdict, blocking(found)) == (Verdict.NOT_NOW, Reason.AMOUNT)
    (finding,) = found.nearest[0].findings
    assert (finding.wanted, finding.free, finding.capacity) == (8000, 2000, 16000)
    assert finding.words == "Insufficient cpu: wants 8, free 2 of 16, 6 short"


def test_a_unit_larger_than_any_node_never_fits() -> None:
    lab = Lab(small(kind("small", cpu=32, available=1), nodes=ONE_NODE))
    lab.ask("train", "small")
    found = explained(lab, "train")
    assert found.verdict is Verdict.NEVER
    assert not found.nearest[0].findings[0].ever


def test_gates_of_others_hold_a_guest() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    lab.ask("train", "small", schedulingGates=[{"name": "example.com/quota"}])
    found = explained(lab, "train")
    assert (found.verdict, blocking(found)) == (Verdict.NOT_NOW, Reason.SCHEDULING_GATE)
    assert helps(found) == ["1 node fits if the scheduling gate example.com/quota is lifted"]


def test_a_guest_of_an_older_shape_has_to_be_created_anew() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    lab.ask("train", "small")
    lab.set_spec(small(kind("small", cpu=8, available=1), nodes=ONE_NODE))
    lab.sleepers.clear()
    found = explained(lab, "train")
    assert (found.verdict, blocking(found)) == (Verdict.NEVER, Reason.UNIT_SHAPE)
    assert helps(found) == [
        "1 node fits if it is created anew, with the shape that its type has now"
    ]


def test_an_unknown_type_is_told_with_those_that_would_do() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    lab.ask("train", "smal")
    found = explained(lab, "train")
    assert (found.verdict, blocking(found)) == (Verdict.NEVER, Reason.MACHINE_TYPE)
    assert "there is no type 'smal' in its group: it has small" in found.summary
    assert [each.query for each in found.relaxations] == [
        "imperator.tenzen-y.io/machine-type=small"
    ]


def test_a_pod_of_a_namespace_that_is_not_opted_in_is_no_guest() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE), namespaces=(namespace("team"),))
    pod = lab.ask("train", "small")
    lab.guests["train"] = msgspec.structs.replace(
        pod, spec=msgspec.structs.replace(pod.spec, scheduling_gates=())
    )
    found = explained(lab, "train")
    assert found.verdict is Verdict.NEVER
    assert "nothing was injected" in found.summary
    assert [each.query for each in found.relaxations] == [f"{INJECT_RESOURCE}=enabled"]


def test_where_one_change_is_not_enough_two_are_told() -> None:
    lab = Lab(
        small(kind("small", available=1, buyers={"namespaces": ["other"]}), nodes=ONE_NODE),
        namespaces=(opted_in("team"), opted_in("other")),
    )
    lab.sold("holder", "small", namespace="other")
    lab.ask("train", "small")
    found = explained(lab, "train")
    assert helps(found) == [
        "1 node fits if other/holder gives its unit back and namespace 'team' is among the buyers",
        "1 node fits if there are 2 units of small and namespace 'team' is among the buyers",
    ]
    assert {len(each.changes) for each in found.relaxations} == {2}


def test_children_are_told_of_the_units_that_they_are_made_of() -> None:
    half = kind(
        "half", cpu=4, available=2, spec={"dependence": {"parent": "whole", "availableRatio": 0.5}}
    )
    lab = Lab(small(kind("whole", cpu=8, available=1), half, nodes={"n1": "whole"}))
    lab.sold("all", "whole")
    lab.ask("part", "half")
    found = explained(lab, "part")
    assert blocking(found) is Reason.STOCK
    assert "of whole, of which they are made, too little is left" in found.summary
    assert helps(found) == [
        "1 node fits if team/all gives its unit back",
        "1 node fits if there are 3 units of half and 2 units of whole",
    ]


def test_a_pod_that_is_over_or_going_gets_nothing() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    going = lab.ask("going", "small", meta={"deletionTimestamp": "2026-11-16T12:00:00Z"})
    over = msgspec.structs.replace(
        lab.ask("over", "small"), status=msgspec.convert({"phase": "Failed"}, type(going.status))
    )
    for pod, words in ((going, "is being deleted"), (over, "has ended")):
        found = explain_guest(lab.snapshot(), pod)
        assert found.verdict is Verdict.NEVER
        assert words in found.summary


def test_a_group_without_a_machine() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    pod = lab.ask("train", "small")
    found = explain_without_machine(pod, [])
    assert (found.verdict, blocking(found)) == (Verdict.NEVER, Reason.MACHINE)
    assert found.summary == "team/train waits: there is no Machine of group 'general-machine'."
    refused = explain_without_machine(pod, [machine()])
    assert refused.verdict is Verdict.NOT_NOW
    assert "Machine general-machine of group 'general-machine' is not accepted" in refused.summary


def test_gpus_of_the_wrong_product_are_a_matter_of_labels() -> None:
    gpu = {"gpu": {"type": "nvidia.com/gpu", "num": 1, "product": "A100"}}
    spec = small(kind("small", available=1, spec=gpu), nodes=ONE_NODE)
    lab = Lab(spec, node("n1", cpu=16, gpus=2, labels={"nvidia.com/gpu.product": "T4"}))
    lab.ask("train", "small")
    found = explained(lab, "train")
    assert (found.verdict, blocking(found)) == (Verdict.NEVER, Reason.NODE_AFFINITY)
    assert found.nearest[0].findings[0].words == (
        "node affinity wants label nvidia.com/gpu.product In A100, which is 'T4'"
    )
