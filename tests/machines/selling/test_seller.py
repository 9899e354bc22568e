"""Who is sold a unit, where, and who is not: the seller on a lab in memory."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dovetail.machines.names import HOSTNAME, MACHINE_TYPE, UNIT_GROUP
from dovetail.machines.plan import plan_machine
from dovetail.machines.selling.waiting import WaitReason
from dovetail.podfit.objects import PodSchedulingGate, PodStatus
from tests.machines.building import node
from tests.machines.lab import Lab, kind, small

JOB = {"ownerReferences": [{"kind": "Job", "name": "job", "uid": "job", "controller": True}]}


def pool(available: int, *names: str, cpu: int = 16) -> Lab:
    """One type of 4 CPUs."""
    spec = small(kind("quad", 4, available), nodes=dict.fromkeys(names, "quad"))
    return Lab(spec, *(node(name, cpu=cpu, gpus=0) for name in names))


def apart(**labels: str) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": labels}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": required}}


def sold(lab: Lab) -> dict[str, str]:
    """Nodes by the names of those who get a unit now."""
    return {
        order.pod.metadata.name: order.node for sale in lab.plan().sales for order in sale.orders
    }


def reasons(lab: Lab) -> dict[str, WaitReason]:
    return {uid: why.reason for uid, why in lab.plan().waiting.items()}


def over(lab: Lab, name: str, phase: str) -> None:
    lab.guests[name] = replace(lab.guests[name], status=PodStatus(phase=phase))
    lab.units.pop(name)
    lab.table.remove_pod(name)


def test_a_group_is_sold_all_at_once_or_not() -> None:
    lab = pool(3, "n0")
    for n in range(2):
        lab.ask(f"member-{n}", "quad", unit_group=("three", 3))
    assert set(reasons(lab).values()) == {WaitReason.GROUP_INCOMPLETE}
    lab.sold("other", "quad")
    lab.ask("member-2", "quad", unit_group=("three", 3))
    assert sold(lab) == {}
    assert set(reasons(lab).values()) == {WaitReason.GROUP_DOES_NOT_FIT}
    assert lab.plan().waiting["member-0"].message == (
        "unit group 'three' gets all units or none: 2 of 3 could be sold now; then, for member-2:"
        " all 3 units of quad are sold"
    )
    lab.end("other")
    assert len(sold(lab)) == 3


def test_members_are_told_what_speaks_against_each_alone() -> None:
    lab = pool(2, "n0")
    lab.ask("plain", "quad", unit_group=("pair", 2))
    lab.ask("elsewhere", "quad", unit_group=("pair", 2), nodeSelector={HOSTNAME: "nowhere"})
    assert reasons(lab) == {
        "plain": WaitReason.GROUP_DOES_NOT_FIT,
        "elsewhere": WaitReason.NO_NODE_FITS,
    }


def test_pods_beyond_the_size_are_sold_one_by_one_after_their_group() -> None:
    lab = pool(3, "n0")
    for n in range(4):
        lab.ask(f"member-{n}", "quad", unit_group=("three", 3), minutes_ago=60 - n)
    assert sold(lab).keys() == {"member-0", "member-1", "member-2"}
    assert reasons(lab) == {"member-3": WaitReason.SOLD_OUT}
    lab.occupy("n0", cpu="4")
    lab.ask("before", "quad", minutes_ago=90)
    assert sold(lab).keys() == {"before"}
    assert len(reasons(lab)) == 4, "those beyond the size, too"


def test_who_comes_in_the_place_of_a_pod_of_its_job_gets_a_unit() -> None:
    lab = pool(4, "n0")
    for n in range(3):
        lab.ask(f"pod-{n}", "quad", unit_group=("job", 3), meta=JOB)
    lab.sell()
    over(lab, "pod-0", "Failed")
    lab.ask("second-try", "quad", unit_group=("job", 3), meta=JOB)
    assert sold(lab).keys() == {"second-try"}
    for n in (1, 2):
        over(lab, f"pod-{n}", "Succeeded")
    assert sold(lab).keys() == {"second-try"}
    # A pod of another run is of another Job.
    again = {"ownerReferences": [{**JOB["ownerReferences"][0], "uid": "again"}]}
    lab.end("second-try")
    lab.ask("other-run", "quad", unit_group=("job", 3), meta=again)
    assert reasons(lab) == {"other-run": WaitReason.GROUP_INCOMPLETE}


def test_members_that_few_nodes_take_are_placed_first() -> None:
    for wanted in ("n0", "n1"):
        lab = pool(2, "n0", "n1", cpu=4)
        lab.ask("anywhere", "quad", unit_group=("pair", 2), minutes_ago=60)
        on = {HOSTNAME: wanted}
        lab.ask("there", "quad", unit_group=("pair", 2), minutes_ago=30, nodeSelector=on)
        assert sold(lab)["there"] == wanted


def test_guests_of_one_plan_heed_each_other() -> None:
    """Whoever has the terms, and whoever was sold first."""
    for minutes_ago in (30, 90):
        lab = pool(4, "n0", "n1")
        lab.ask("shy", "quad", minutes_ago=60, **apart(**{UNIT_GROUP: "loud"}))
        for n in range(2):
            lab.ask(f"loud-{n}", "quad", unit_group=("loud", 1), minutes_ago=minutes_ago)
        places = sold(lab)
        assert len(places) == 3
        assert places["shy"] not in (places["loud-0"], places["loud-1"])


def test_when_enough_is_sold_the_rest_of_the_line_has_its_turn_by_the_next_plan() -> None:
    lab = pool(8, "n0", "n1")
    for n in range(5):
        lab.ask(f"guest-{n}", "quad", minutes_ago=50 - n)
    lab.ask("first", "quad", minutes_ago=60, priority=7)
    plan = plan_machine(lab.snapshot(), 2)
    assert [order.pod.metadata.name for sale in plan.sales for order in sale.orders] == [
        "first",
        "guest-0",
    ]
    assert plan.is_part
    assert plan.waiting == {}
    assert not plan_machine(lab.snapshot(), 6).is_part


def test_a_group_is_not_torn_where_enough_is_sold() -> None:
    lab = pool(8, "n0", "n1")
    lab.ask("single", "quad", minutes_ago=90)
    for n in range(3):
        lab.ask(f"member-{n}", "quad", unit_group=("three", 3))
    lab.ask("last", "quad", minutes_ago=10)
    plan = plan_machine(lab.snapshot(), 2)
    assert [len(sale.orders) for sale in plan.sales] == [1, 3]
    assert plan.is_part


def test_who_cannot_be_served_has_had_its_turn() -> None:
    lab = pool(1, "n0")
    for n in range(3):
        lab.ask(f"guest-{n}", "quad")
    assert not plan_machine(lab.snapshot(), 2).is_part


# -- order ---------------------------------------------------------------------------------------


def test_priority_comes_before_age_and_age_before_the_rest() -> None:
    lab = pool(2, "n0")
    lab.ask("young", "quad", minutes_ago=1)
    lab.ask("old", "quad", minutes_ago=50)
    lab.ask("urgent", "quad", minutes_ago=0, priority=10)
    assert sold(lab).keys() == {"urgent", "old"}
    assert reasons(lab) == {"young": WaitReason.SOLD_OUT}


def test_who_cannot_be_served_holds_nobody_up() -> None:
    lab = pool(2, "n0")
    lab.ask("elsewhere", "quad", minutes_ago=90, nodeSelector={HOSTNAME: "nowhere"})
    lab.ask("half", "quad", minutes_ago=80, unit_group=("pair", 2))
    lab.ask("next", "quad", minutes_ago=70)
    assert sold(lab).keys() == {"next"}


# -- places --------------------------------------------------------------------------------------


def test_a_group_tries_other_ways_if_the_first_leaves_somebody_out() -> None:
    """Two of the three nodes would take each of two members, and they share one: the first choice
    of the one is the only place of the other."""
    lab = pool(3, "n0", "n1", "n2", cpu=4)
    zones = {"n0": "x", "n1": "y", "n2": "z"}
    for name, zone in zones.items():
        labels = {**lab.nodes[name].metadata.labels, "zone": zone}
        meta = replace(lab.nodes[name].metadata, labels=labels)
        lab.set_node(replace(lab.nodes[name], metadata=meta))
    for number, allowed in enumerate((["x", "y"], ["x", "z"], ["y", "x"])):
        lab.ask(f"member-{number}", "quad", unit_group=("three", 3), **in_zones(*allowed))
    places = sold(lab)
    assert sorted(places.values()) == ["n0", "n1", "n2"]
    assert places["member-1"] == "n2"


def in_zones(*zones: str) -> dict[str, Any]:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": list(zones)}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


def test_a_group_that_is_not_sold_leaves_everything_as_it_was() -> None:
    """Who comes after it is served as if it were not there: the same victim goes."""
    lab = pool(3, "n0")
    lab.ask("alone", "quad", minutes_ago=1)
    [before] = lab.plan().sales
    for number in range(4):
        lab.ask(f"member-{number}", "quad", unit_group=("four", 4), minutes_ago=60)
    [after] = lab.plan().sales
    assert [each.uid for each in after.victims] == [each.uid for each in before.victims]
    assert after.victims[0].ordinal == 2, "the highest"


def family(available: int = 2) -> Lab:
    half = kind(
        "half", 2, 2 * available, spec={"dependence": {"parent": "quad", "availableRatio": 0.5}}
    )
    spec = small(kind("quad", 4, available), half, nodes={"n0": "quad", "n1": "quad"})
    return Lab(spec, node("n0", cpu=8, gpus=0), node("n1", cpu=8, gpus=0))


def test_a_child_is_sold_of_an_opened_unit_before_another_is_opened() -> None:
    lab = family()
    lab.ask("first", "half")
    lab.sell()
    at = lab.guests["first"].spec.node_name
    lab.stock()
    lab.ask("second", "half")
    [sale] = lab.plan().sales
    assert [(each.type, each.node) for each in sale.victims] == [("half", at)]
    assert sale.orders[0].node == at


def test_a_child_opens_a_unit_where_one_is_held() -> None:
    lab = family(1)
    [(_, sleeper)] = lab.sleepers.items()
    lab.ask("first", "half")
    [sale] = lab.plan().sales
    assert [each.type for each in sale.victims] == ["quad"]
    assert sale.orders[0].node == sleeper.spec.node_name


def test_stock_of_other_families_is_not_touched() -> None:
    types = [kind("quad", 4, 1), kind("pair", 2, 2)]
    spec = small(*types, nodes={"n0": ["quad", "pair"]}, severalTypesPerNode=True)
    lab = Lab(spec, node("n0", cpu=8, gpus=0))
    lab.ask("guest", "quad")
    lab.ask("another", "pair")
    for sale in lab.plan().sales:
        assert {each.type for each in sale.victims} == {sale.orders[0].type}


def test_why_no_node_takes_it_is_told_node_by_node() -> None:
    lab = pool(1, "n0")
    lab.ask("elsewhere", "quad", nodeSelector={"zone": "moon"})
    why = lab.plan().waiting["elsewhere"]
    assert why.reason == WaitReason.NO_NODE_FITS
    assert why.message.startswith("no node that serves quad takes it: n0: ")
    assert "zone" in why.message


# -- what speaks against a guest -----------------------------------------------------------------


def test_a_type_that_there_is_not_is_told_with_those_that_there_are() -> None:
    lab = pool(1, "n0")
    pod = lab.ask("guest", "quad")
    labels = {**pod.metadata.labels, MACHINE_TYPE: "octo"}
    lab.guests["guest"] = replace(pod, metadata=replace(pod.metadata, labels=labels))
    why = lab.plan().waiting["guest"]
    assert why.reason == WaitReason.UNKNOWN_TYPE
    assert why.message == "there is no type 'octo' in its group: it has quad"


def test_a_guest_of_an_older_shape_is_not_sold_one_of_the_new() -> None:
    lab = pool(1, "n0")
    lab.ask("guest", "quad")
    lab.set_spec(small(kind("quad", 3, 1), nodes={"n0": "quad"}))
    why = lab.plan().waiting["guest"]
    assert why.reason == WaitReason.SHAPE_DIFFERS
    assert "requests 4000 of cpu where a unit of quad has 3000" in why.message


def test_a_guest_behind_the_gates_of_others_is_not_sold_a_unit_yet() -> None:
    lab = pool(1, "n0")
    pod = lab.ask("guest", "quad")
    gates = (*pod.spec.scheduling_gates, PodSchedulingGate(name="example.com/quota"))
    lab.guests["guest"] = replace(pod, spec=replace(pod.spec, scheduling_gates=gates))
    why = lab.plan().waiting["guest"]
    assert (why.reason, "example.com/quota" in why.message) == (WaitReason.OTHER_GATES, True)
