"""Puts outcomes together: means over seeds for each workload and policy, and decision times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from dovetail.simulate.jobs import Job, Source
from dovetail.simulate.outcome import Outcome

Curve = list[tuple[float, float, float]]


class Result(msgspec.Struct, kw_only=True):
    workload: str
    policy: str
    seeds: list[int]
    mean: dict[str, float]
    deviation: dict[str, float]
    """Between seeds; none where there is but one."""
    runs: list[dict[str, float]]
    """The figures of each seed."""
    decision_us: dict[str, float]
    curve: Curve
    """Demand, allocated, fragmented; means over seeds, in percent."""


def results(done: Iterable[tuple[Job, Outcome]]) -> list[Result]:
    """In the order in which workloads and policies first appear."""
    cells: dict[tuple[Source, str], list[tuple[Job, Outcome]]] = {}
    for job, outcome in done:
        cells.setdefault((job.source, job.policy), []).append((job, outcome))
    return [result(sorted(runs, key=lambda run: run[0].seed)) for runs in cells.values()]


def result(runs: Sequence[tuple[Job, Outcome]]) -> Result:
    """Of one workload and policy."""
    job = runs[0][0]
    outcomes = [outcome for _, outcome in runs]
    names = [name for name in outcomes[0].figures if all(name in o.figures for o in outcomes)]
    columns = {name: np.array([o.figures[name] for o in outcomes]) for name in names}
    several = len(runs) > 1
    return Result(
        workload=job.workload,
        policy=job.policy,
        seeds=[each.seed for each, _ in runs],
        mean={name: rounded(values.mean()) for name, values in columns.items()},
        deviation={n: rounded(v.std(ddof=1)) for n, v in columns.items()} if several else {},
        runs=[{name: rounded(value) for name, value in o.figures.items()} for o in outcomes],
        decision_us=decision_times(outcomes),
        curve=mean_curve([outcome.curve for outcome in outcomes]),
    )


def decision_times(outcomes: Sequence[Outcome]) -> dict[str, float]:
    times = np.concatenate([outcome.times for outcome in outcomes]) / 1000
    if not len(times):
        return {}
    middle, late = np.percentile(times, (50, 99))
    return {
        "p50": round(float(middle), 1),
        "mean": round(float(times.mean()), 1),
        "p99": round(float(late), 1),
    }


def mean_curve(curves: Sequence[Curve]) -> Curve:
    """At each whole percent of demand that all seeds reached."""
    if not all(curves):
        return []
    last = min(int(curve[-1][0]) for curve in curves)
    grid = np.arange(last + 1)
    columns = [np.array(curve).T for curve in curves]
    allocated = np.mean([np.interp(grid, c[0], c[1]) for c in columns], axis=0)
    fragmented = np.mean([np.interp(grid, c[0], c[2]) for c in columns], axis=0)
    return [
        (float(at), rounded(high), rounded(low))
        for at, high, low in zip(grid, allocated, fragmented, strict=True)
    ]


def rounded(value: float) -> float:
    return round(float(value), 4)
