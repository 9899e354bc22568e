"""Placement of a tenth of openb, through the engine, against an independent replay."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.core.fleet import FleetPlan
from dovetail.engine.rank.parse import parse_ranking
from dovetail.simulate import arrivals, openb
from dovetail.simulate.outcome import Outcome
from dovetail.simulate.workload import Workload
from tests.support.openb_data import DATA


def tenth(trace: str, directory: Path) -> Workload:
    """Every tenth node and every tenth task."""
    found = {}
    for name in ("node_list_gpu_node", f"pod_list_{trace}"):
        header, *rows = (DATA / f"openb_{name}.csv").read_text().splitlines()
        found[name] = directory / f"{name}.csv"
        found[name].write_text("\n".join([header, *rows[::10]]) + "\n")
    return openb.read(*found.values())


@pytest.mark.parametrize(
    ("trace", "policy", "allocated"),
    [
        ("default", "fragmentation", 94.6565),
        ("gpuspec33", "fragmentation", 95.0399),
        ("cpu250", "fragmentation", 90.7604),
    ],
)
def test_the_engine_places_as_well_as_the_definition(
    trace: str, policy: str, allocated: float, tmp_path: Path
) -> None:
    """The figures are from a plain replay, written from the definitions without the engine."""
    outcome = arrivals.replay(tenth(trace, tmp_path), parse_ranking(policy), seed=1, percent=130)
    assert outcome.figures["allocated"] == pytest.approx(allocated, abs=0.0001)


def test_scarcity_is_nowhere_below_the_better_of_the_others() -> None:
    """Not only where most tasks are dropped: at every percent of demand."""
    workload = openb.read(
        DATA / "openb_node_list_gpu_node.csv", DATA / "openb_pod_list_default.csv"
    )
    curves = [
        [allocated for _, allocated, _ in outcome_of(workload, policy).curve]
        for policy in ("scarcity", "first-fit", "fragmentation")
    ]
    gaps = [ours - max(others) for ours, *others in zip(*curves, strict=True)]
    assert len(gaps) == 105
    assert min(gaps) > -0.2
    assert curves[0][-1] > 95.8


def outcome_of(workload: Workload, policy: str) -> Outcome:
    return arrivals.replay(workload, parse_ranking(policy), seed=42, percent=105)


def test_openb_is_read_in_full() -> None:
    workload = openb.read(
        DATA / "openb_node_list_gpu_node.csv", DATA / "openb_pod_list_default.csv"
    )
    assert len(workload.tasks) == 8152
    assert roots(workload.fleet) == 1213
    assert len(workload.fleet.providers) - roots(workload.fleet) == 6212
    assert workload.name == "default"


def roots(plan: FleetPlan) -> int:
    return sum(each.parent is None for each in plan.providers)
