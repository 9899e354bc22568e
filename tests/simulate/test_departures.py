"""Tasks that come and go, on fleets small enough to work it out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.simulate.errors import BadPlan
from tests.simulate import files
from tests.simulate.worlds import depart, workload


def test_who_leaves_makes_room_for_who_comes_at_the_same_time(tmp_path: Path) -> None:
    jobs = [
        files.job("first", 10, arrives=0, ends=10),
        files.job("second", 10, arrives=10, ends=20),
        files.job("last", 10, arrives=20),
    ]
    figures = depart(workload(tmp_path, [files.host("a", 1)], jobs)).figures
    assert (figures["allocated"], figures["demanded"], figures["dropped"]) == (100, 100, 0)


def test_shares_are_means_over_time(tmp_path: Path) -> None:
    """Ten seconds one of two devices, ten both, twenty none; what overlaps too much is dropped."""
    jobs = [
        files.job("long", 10, arrives=0, ends=20),
        files.job("short", 10, arrives=10, ends=20),
        files.job("too much", 10, arrives=15, ends=25),
        files.job("end", 1, arrives=40),
    ]
    figures = depart(workload(tmp_path, [files.host("a", 2)], jobs)).figures
    assert figures["allocated"] == pytest.approx(100 * (10 * 1 + 10 * 2) / (40 * 2))
    assert figures["demanded"] == pytest.approx(100 * (10 * 1 + 10 * 2 + 10) / (40 * 2))
    assert (figures["peak"], figures["dropped"], figures["tasks"]) == (100, 1, 4)


def test_who_passes_by_holds_nothing_afterwards(tmp_path: Path) -> None:
    jobs = [files.job("passes", 10, arrives=5, ends=5), files.job("stays", 10, arrives=6)]
    figures = depart(workload(tmp_path, [files.host("a", 1)], jobs)).figures
    assert (figures["allocated"], figures["dropped"], figures["peak"]) == (0, 0, 100)


def test_lifetimes_are_stretched_up_to_the_load(tmp_path: Path) -> None:
    """Eight short tasks in four rounds hold a device for 32 of 70 s; twice as long is enough."""
    jobs = [files.job(f"t{at}", 10, arrives=10 * at, ends=10 * at + 1) for at in range(8)]
    world = workload(tmp_path, [files.host("a", 1)], jobs)
    figures = depart(world, load=80).figures
    assert figures["tasks"] == 32
    assert figures["stretch"] == 2
    assert figures["demanded"] >= 80
    assert figures["allocated"] <= figures["demanded"]


def test_a_load_out_of_reach_is_refused(tmp_path: Path) -> None:
    jobs = [files.job("a", 1, arrives=0, ends=1), files.job("b", 1, arrives=9, ends=10)]
    with pytest.raises(BadPlan, match="cannot load the fleet to 500%"):
        depart(workload(tmp_path, [files.host("a", 1)], jobs), load=500)


def test_tasks_without_times_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadPlan, match="jobs: task t has no times to come and go at"):
        depart(workload(tmp_path, [files.host("a", 1)], [files.job("t", 1)]))


def test_tasks_that_all_arrive_at_once_are_refused(tmp_path: Path) -> None:
    jobs = [files.job("a", 1, arrives=3), files.job("b", 1, arrives=3)]
    with pytest.raises(BadPlan, match="no time passes"):
        depart(workload(tmp_path, [files.host("a", 1)], jobs))
