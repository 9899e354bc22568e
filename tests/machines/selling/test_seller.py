"""Who is sold a unit, where, and who is not: the seller on a lab in memory."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dovetail.machines.names import HOSTNAME, UNIT_GROUP
from dovetail.machines.plan import plan_machine
from dovetail.machines.selling.waiting import WaitReason
from dovetail.podfit.objects import PodStatus
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
