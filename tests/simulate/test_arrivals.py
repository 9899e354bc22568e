"""Tasks that come and stay, on fleets small enough to work it out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.simulate.errors import BadPlan
from tests.simulate import files
from tests.simulate.worlds import arrive, workload


def test_tasks_arrive_until_the_next_would_pass_the_demand(tmp_path: Path) -> None:
    """Three devices of ten units; tasks of four: two fit each, seven come before 100%."""
    hosts = [files.host("a", 2), files.host("b", 1)]
    world = workload(tmp_path, hosts, [files.job("t", 4)])
    figures = arrive(world, 100).figures
    assert figures["tasks"] == 7
    assert figures["dropped"] == 1
    assert figures["allocated"] == pytest.approx(80)
    assert "allocated_at_100" not in figures


def test_what_no_typical_task_can_use_is_fragmented(tmp_path: Path) -> None:
    """Of each device two units of ten are left, and tasks want four."""
    world = workload(tmp_path, [files.host("a", 3)], [files.job("t", 4)])
    assert arrive(world, 100).figures["fragmented"] == pytest.approx(20)


def test_devices_without_processors_are_fragmented(tmp_path: Path) -> None:
    """Processors for one task only: the second device is of no use."""
    world = workload(tmp_path, [files.host("a", 2, vcpus=9)], [files.job("t", 10, vcpus=5)])
    figures = arrive(world, 100).figures
    assert (figures["allocated"], figures["dropped"], figures["fragmented"]) == (50, 1, 50)


def test_the_curve_follows_demand(tmp_path: Path) -> None:
    world = workload(tmp_path, [files.host("a", 2)], [files.job("t", 10)])
    outcome = arrive(world, 150)
    assert outcome.curve == [(50, 50, 0), (100, 100, 0), (150, 100, 0)]
    assert outcome.figures["allocated_at_100"] == 100
    assert len(outcome.times) == 3


def test_the_first_loss_is_where_dropped_tasks_begin_to_count(tmp_path: Path) -> None:
    """Two devices take two tasks; the third is lost. Of the demand a half, all and all was held."""
    world = workload(tmp_path, [files.host("a", 2)], [files.job("t", 10)])
    figures = arrive(world, 150).figures
    assert figures["first_loss"] == 150
    assert figures["area"] == pytest.approx((50 + 100 + 100) / 3)


def test_without_a_loss_all_demand_was_met(tmp_path: Path) -> None:
    world = workload(tmp_path, [files.host("a", 2)], [files.job("t", 10)])
    figures = arrive(world, 100).figures
    assert (figures["first_loss"], figures["area"]) == (100, 75)


def test_half_a_percent_of_capacity_is_not_yet_a_loss(tmp_path: Path) -> None:
    """Of 200 devices one more is asked for than there are, then another."""
    world = workload(tmp_path, [files.host("a", 200, vcpus=500)], [files.job("t", 10)])
    assert arrive(world, 102).figures["first_loss"] == 101


def test_a_whole_trace_comes_before_any_task_comes_again(tmp_path: Path) -> None:
    """Tasks of 1 to 4 units in any order make ten; so all is placed on the one device."""
    jobs = [files.job(f"t{units}", units) for units in (1, 2, 3, 4)]
    world = workload(tmp_path, [files.host("a", 1)], jobs)
    for seed in range(5):
        figures = arrive(world, 100, seed=seed).figures
        assert (figures["tasks"], figures["allocated"]) == (4, 100)


def test_the_policy_decides(tmp_path: Path) -> None:
    """Spread gives each of two devices a small task, so that the large one finds no place."""
    jobs = [files.job("small", 2), files.job("small too", 2), files.job("large", 10)]
    world = workload(tmp_path, [files.host("a", 1), files.host("b", 1)], jobs)
    packed = [arrive(world, 70, "pack", seed).figures["dropped"] for seed in range(12)]
    spread = [arrive(world, 70, "spread", seed).figures["dropped"] for seed in range(12)]
    assert not any(packed)
    assert any(spread)


def test_the_order_of_hosts_follows_the_seed(tmp_path: Path) -> None:
    """Host a has no processors to spare for a second task: it matters which comes first."""
    hosts = [files.host("a", 2, vcpus=1), files.host("b", 2, vcpus=100)]
    jobs = [files.job("lean", 10, vcpus=1), files.job("hungry", 10, vcpus=50)]
    world = workload(tmp_path, hosts, jobs)
    found = [arrive(world, 100, seed=seed).figures for seed in range(20)]
    assert len({figures["allocated"] for figures in found}) > 1
    assert found == [arrive(world, 100, seed=seed).figures for seed in range(20)]


def test_a_fleet_without_the_devices_asked_for_is_refused(tmp_path: Path) -> None:
    world = workload(tmp_path, [files.host("a", 0)], [files.job("t", 1)])
    with pytest.raises(BadPlan, match="none of the devices"):
        arrive(world, 100)


def test_tasks_too_small_to_be_counted_are_refused(tmp_path: Path) -> None:
    """Demand would never reach its limit, and the replay never end."""
    hosts = [{"name": "a", "inventories": {"MEMORY_MB": 10_000_000}}]
    jobs = [{"name": "t", "groups": {"": {"resources": {"MEMORY_MB": 1}}}}]
    with pytest.raises(BadPlan, match="a thousandth of a device"):
        arrive(workload(tmp_path, hosts, jobs), 100)
