"""What a plan finds of one whose maker died half-way, and puts right."""

from __future__ import annotations

from msgspec.structs import replace

from dovetail.podfit.objects import PodStatus
from tests.machines.building import node
from tests.machines.lab import Lab, kind, small


def lab_of_one() -> Lab:
    spec = small(kind("quad", 4, 1), nodes={"n0": "quad"})
    return Lab(spec, node("n0", cpu=4, gpus=0))


def test_a_sleeper_whose_deletion_was_cut_short_is_deleted_again() -> None:
    """Marked, but not removed: no kubelet is in its way, and it would stay for ever."""
    lab = lab_of_one()
    (sleeper,) = lab.sleepers.values()
    meta = replace(sleeper.metadata, deletion_timestamp="2026-11-16T11:00:00Z")
    lab.sleepers[meta.uid] = replace(sleeper, metadata=meta)
    plan = lab.plan()
    assert [pod.metadata.uid for pod, _ in plan.removals] == [meta.uid]
    assert list(plan.releases) == [meta.uid], "and its unit is given back, once"


def test_no_room_is_kept_for_who_has_no_unit_any_more() -> None:
    """The scheduler would keep the last unit's room for one who waits, and the one who bought it
    would never be scheduled."""
    lab = lab_of_one()
    lab.sold("holder", "quad")
    nominated = lab.ask("waits", "quad")
    lab.guests["waits"] = replace(nominated, status=PodStatus(nominated_node_name="n0"))
    assert [pod.metadata.name for pod in lab.plan().withdrawals] == ["waits"]
    lab.end("holder")
    plan = lab.plan()
    assert (len(plan.sales), plan.withdrawals) == (1, ()), "who gets the unit keeps its room"
