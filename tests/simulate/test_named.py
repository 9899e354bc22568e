"""Workloads in which tasks name a model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dovetail.simulate.errors import BadPlan
from dovetail.simulate.named import BY_STOCK, EVENLY, naming
from dovetail.simulate.workload import Workload
from tests.simulate import files
from tests.simulate.worlds import arrive, workload


def host(name: str, model: str, gpus: int) -> dict[str, Any]:
    found = files.host(name, gpus)
    for child in found["children"]:
        child["traits"] = [model]
    return found


def world(directory: Path, tasks: int = 2000) -> Workload:
    """Nine devices of one model, and one of another."""
    hosts = [host("a", "CUSTOM_OLD", 9), host("b", "CUSTOM_NEW", 1)]
    return workload(directory, hosts, [files.job(f"t{n}", 4) for n in range(tasks)])


def names(found: Workload) -> Counter[str]:
    return Counter(
        name
        for task in found.tasks
        for group in task.requests[0].groups
        for alternatives in group.required
        for name in alternatives
    )


def test_by_stock_a_model_is_named_as_often_as_there_are_devices_of_it(tmp_path: Path) -> None:
    found = names(naming(world(tmp_path), 30, BY_STOCK, seed=1))
    assert sum(found.values()) == pytest.approx(600, rel=0.1)
    assert found["CUSTOM_OLD"] == pytest.approx(540, rel=0.1)


def test_evenly_all_models_are_named_alike(tmp_path: Path) -> None:
    found = names(naming(world(tmp_path), 30, EVENLY, seed=1))
    assert found["CUSTOM_OLD"] == pytest.approx(300, rel=0.2)
    assert found["CUSTOM_NEW"] == pytest.approx(300, rel=0.2)


def test_the_seed_decides_who_names_what(tmp_path: Path) -> None:
    """Also of what is typical: policies know the names."""
    plain = world(tmp_path, 50)
    first = naming(plain, 30, EVENLY, seed=1)
    assert first == naming(plain, 30, EVENLY, seed=1)
    assert first != naming(plain, 30, EVENLY, seed=2)
    assert all(task.typical.groups[1] == task.requests[0].groups[1] for task in first.tasks)


def test_tasks_are_placed_on_what_they_name(tmp_path: Path) -> None:
    """All name one of two models, half of them the one of which there is one device only."""
    found = arrive(naming(world(tmp_path, 10), 100, EVENLY, seed=3), 40)
    assert found.figures["dropped"] > 0


def test_a_fleet_without_models_is_refused(tmp_path: Path) -> None:
    plain = workload(tmp_path, [files.host("a", 2)], [files.job("t", 4)])
    with pytest.raises(BadPlan, match="no device has a trait"):
        naming(plain, 30, BY_STOCK, seed=1)
