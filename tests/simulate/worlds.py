"""Replays of small workloads, to be worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dovetail.engine.rank.parse import parse_ranking
from dovetail.simulate import arrivals, departures, lines
from dovetail.simulate.outcome import Outcome
from dovetail.simulate.workload import Workload
from tests.simulate import files

Documents = Sequence[dict[str, Any]]


def workload(directory: Path, hosts: Documents, jobs: Documents) -> Workload:
    fleet = files.json_lines(directory / "fleet.jsonl", hosts)
    return lines.read(fleet, files.json_lines(directory / "jobs.jsonl", jobs))


def arrive(world: Workload, percent: int, policy: str = "first-fit", seed: int = 1) -> Outcome:
    return arrivals.replay(world, parse_ranking(policy), seed, percent)


def depart(
    world: Workload, load: int | None = None, policy: str = "first-fit", seed: int = 1
) -> Outcome:
    return departures.replay(world, parse_ranking(policy), seed, load)
