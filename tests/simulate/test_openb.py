"""The reader of openb files."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.simulate import openb
from dovetail.simulate.errors import BadWorkload
from tests.simulate import files


def test_a_node_is_a_root_with_a_child_for_each_gpu(tmp_path: Path) -> None:
    plan = openb.fleet(files.nodes(tmp_path, ["n0,64000,262144,2,P100", "n1,8000,1024,0,"]))
    found = [(each.name, each.parent, each.traits) for each in plan.providers]
    assert found == [
        ("n0", None, []),
        ("n0_gpu0", 0, ["CUSTOM_GPU_P100"]),
        ("n0_gpu1", 0, ["CUSTOM_GPU_P100"]),
        ("n1", None, []),
    ]
    amounts = {name: each.total for name, each in plan.providers[0].inventories.items()}
    assert amounts == {"CUSTOM_MILLICPU": 64000, "MEMORY_MB": 262144, "CUSTOM_PODS": 1001}


def test_a_task_asks_for_its_gpus_one_by_one(tmp_path: Path) -> None:
    [task] = openb.tasks_in(files.tasks(tmp_path, ["t,4000,1024,2,1000,T4|P100,5,9"]))
    [request] = task.requests
    assert [group.suffix for group in request.groups] == ["", "_GPU0", "_GPU1"]
    assert request.groups[0].resources == {
        "CUSTOM_MILLICPU": 4000,
        "MEMORY_MB": 1024,
        "CUSTOM_PODS": 1,
    }
    assert request.groups[1].required == (frozenset({"CUSTOM_GPU_T4", "CUSTOM_GPU_P100"}),)
    assert request.isolated == {"_GPU0", "_GPU1"}
    assert (task.arrives, task.ends) == (5, 9)


def test_typical_demand_leaves_memory_out(tmp_path: Path) -> None:
    path = files.tasks(tmp_path, ["a,4000,1024,1,500,,,", "b,4000,2048,1,500,,,"])
    first, second = openb.tasks_in(path)
    assert first.typical.groups == second.typical.groups
    assert first.requests != second.requests


def test_a_task_without_gpus_asks_for_no_model(tmp_path: Path) -> None:
    [task] = openb.tasks_in(files.tasks(tmp_path, ["t,4000,1024,0,0,T4,,"]))
    assert [group.suffix for group in task.requests[0].groups] == [""]
    assert (task.arrives, task.ends) == (None, None)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ("t,many,1,0,0,,,", "line 2: cpu_milli is to be a whole number, not 'many'"),
        ("t,-1,1,0,0,,,", "line 2: cpu_milli is to be a whole number, not '-1'"),
        ("t,1,1,1,1500,,,", "line 2: gpu_milli is from 1 to 1000 of each GPU, not 1500"),
        ("t,1,1,1,10,,9,5", "line 2: t is deleted before it is created"),
        ("t,1", "line 2: num_gpu is to be a whole number, not ''"),
    ],
)
def test_what_is_wrong_with_a_task_is_said_with_its_line(
    tmp_path: Path, row: str, complaint: str
) -> None:
    with pytest.raises(BadWorkload) as caught:
        list(openb.tasks_in(files.tasks(tmp_path, [row])))
    assert str(caught.value).endswith(complaint)


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    path = files.csv_file(tmp_path / "nodes.csv", "sn,cpu_milli,gpu", [])
    with pytest.raises(BadWorkload, match="line 1: no column memory_mib, model"):
        openb.fleet(path)
