"""openb nodes as two NUMA halves each."""

from __future__ import annotations

from pathlib import Path

from dovetail.engine.rank.parse import parse_ranking
from dovetail.simulate import arrivals, halves
from tests.simulate import files

EIGHT, FOUR = "n,16000,16000,8,T4", "m,8000,8000,4,T4"


def replay(directory: Path, nodes: list[str], tasks: list[str], percent: int) -> dict[str, float]:
    world = halves.read(files.nodes(directory, nodes), files.tasks(directory, tasks))
    return arrivals.replay(world, parse_ranking("first-fit"), 1, percent).figures


def test_only_nodes_of_eight_gpus_are_split(tmp_path: Path) -> None:
    plan = halves.fleet(files.nodes(tmp_path, [EIGHT, FOUR]))
    amounts = {
        each.name: {name: inventory.total for name, inventory in each.inventories.items()}
        for each in plan.providers
        if "gpu" not in each.name
    }
    assert amounts == {
        "n": {"CUSTOM_PODS": 1001},
        "n_numa0": {"CUSTOM_MILLICPU": 8000, "MEMORY_MB": 8000},
        "n_numa1": {"CUSTOM_MILLICPU": 8000, "MEMORY_MB": 8000},
        "m": {"CUSTOM_MILLICPU": 8000, "MEMORY_MB": 8000, "CUSTOM_PODS": 1001},
    }
    below = [each.name for each in plan.providers if each.parent == 1]
    assert below == [f"n_numa0_gpu{at}" for at in range(4)]


def test_tasks_that_fit_a_half_do_not_miss(tmp_path: Path) -> None:
    figures = replay(tmp_path, [EIGHT], ["t,8000,8000,4,1000,,,"], 100)
    assert (figures["allocated"], figures["allocated_in_one_half"]) == (100, 100)
    assert (figures["tasks"], figures["misses"]) == (2, 0)


def test_a_task_of_eight_gpus_takes_both_halves_and_misses(tmp_path: Path) -> None:
    figures = replay(tmp_path, [EIGHT], ["t,9001,9001,8,1000,,,"], 100)
    assert (figures["allocated"], figures["allocated_in_one_half"]) == (100, 0)
    assert (figures["misses"], figures["dropped"]) == (1, 0)


def test_a_task_misses_where_only_both_halves_have_room_for_it(tmp_path: Path) -> None:
    """Three GPUs to each half; the one left in each serves a task of two, across."""
    tasks = ["big0,100,100,3,1000,,,", "big1,100,100,3,1000,,,", "pair,100,100,2,1000,,,"]
    figures = replay(tmp_path, [EIGHT], tasks, 100)
    assert figures["allocated"] == 100
    assert figures["misses"] == 1


def test_a_node_that_is_not_split_is_no_miss(tmp_path: Path) -> None:
    figures = replay(tmp_path, [FOUR], ["t,8000,8000,4,1000,,,"], 100)
    assert (figures["allocated"], figures["misses"]) == (100, 0)
