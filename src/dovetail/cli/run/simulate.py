"""`dovetail simulate`: how well policies place a workload."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dovetail.cli.support.exits import LocalFailure
from dovetail.cli.support.output import output_option, show, table
from dovetail.core.errors import DovetailError

if TYPE_CHECKING:
    from dovetail.simulate.jobs import Job
    from dovetail.simulate.outcome import Outcome
    from dovetail.simulate.report import Result

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
MOST_SEEDS = 1000
DEMAND = 130


@click.command()
@click.argument("fleet", type=FILE)
@click.argument("tasks", type=FILE, nargs=-1, required=True)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    default=("first-fit", "best-fit", "fragmentation", "scarcity"),
    show_default=True,
    help="A policy, or several with weights (fragmentation:3,spread:1); may be repeated.",
)
@click.option(
    "--protocol",
    type=click.Choice(("arrivals", "departures", "numa")),
    default="arrivals",
    show_default=True,
    help="Tasks come and stay; come and go; come to nodes in NUMA halves.",
)
@click.option("--seeds", default="42-51", show_default=True, help="As in 1,2,5 or 42-51.")
@click.option(
    "--demand",
    type=click.IntRange(1, 1000),
    show_default=str(DEMAND),
    help="Arrivals and numa: percent of capacity up to which tasks come.",
)
@click.option(
    "--load",
    type=click.IntRange(1, 1000),
    help="Departures: stretch lifetimes until mean demand is this percent of capacity.",
)
@click.option(
    "--named",
    type=click.IntRange(0, 100),
    default=0,
    help="Percent of the tasks that are made to name a model, a trait of devices.",
)
@click.option(
    "--drawn",
    type=click.Choice(("evenly", "stock")),
    default="stock",
    show_default=True,
    help="How models are drawn for --named: evenly over models, or by stock.",
)
@click.option("-j", "--jobs", "cores", type=click.IntRange(1), help="Cores to use.  [default: all]")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), help="A .png or .svg.")
@output_option
def simulate(
    *,
    fleet: Path,
    tasks: tuple[Path, ...],
    policies: tuple[str, ...],
    protocol: str,
    seeds: str,
    demand: int | None,
    load: int | None,
    named: int,
    drawn: str,
    cores: int | None,
    plot: Path | None,
    form: str,
) -> None:
    """Replay tasks on a fleet, to compare policies.

    The FLEET is empty at the start. It and TASKS are CSV files of the openb workload, or a fleet
    file and files of requests, one JSON object a line. No ledger is read or written. Figures are
    the same for the same seeds.
    """
    from dovetail.simulate import plot as plots
    from dovetail.simulate.report import results

    check_aim(protocol, demand, load)
    demand = demand or DEMAND
    try:
        if plot is not None:
            plots.check(plot, protocol)
        jobs = planned(
            fleet=fleet,
            tasks=tasks,
            policies=policies,
            protocol=protocol,
            seeds=seeds,
            demand=demand,
            load=load,
            named=named,
            drawn=drawn,
        )
        found = results(watched(jobs, cores or os.cpu_count() or 1))
    except DovetailError as error:
        raise click.UsageError(str(error)) from error
    aim = {"load": load} if protocol == "departures" else {"demand": demand}
    show(form, document(found, protocol, aim), lambda: lines(found))
    if plot is not None:
        try:
            plots.draw(plot, found)
        except OSError as error:
            raise LocalFailure(f"--plot {plot}: {error.strerror}") from error


def check_aim(protocol: str, demand: int | None, load: int | None) -> None:
    """Each protocol is steered by one of them; the other would go unheard."""
    if protocol == "departures" and demand is not None:
        raise click.UsageError("--demand is not for --protocol departures: use --load")
    if protocol != "departures" and load is not None:
        raise click.UsageError(f"--load is not for --protocol {protocol}: use --demand")


def planned(
    *,
    fleet: Path,
    tasks: Sequence[Path],
    policies: Sequence[str],
    protocol: str,
    seeds: str,
    demand: int,
    load: int | None,
    named: int,
    drawn: str,
) -> list[Job]:
    from dovetail.engine.rank.parse import parse_ranking
    from dovetail.simulate.jobs import Job, Source

    for policy in policies:
        parse_ranking(policy)
    return [
        Job(
            source=Source(fleet, path, protocol),
            policy=policy,
            seed=seed,
            demand=demand,
            load=load,
            named=named,
            drawn=drawn,
        )
        for path in dict.fromkeys(tasks)
        for policy in dict.fromkeys(policies)
        for seed in seeds_of(seeds)
    ]


def seeds_of(text: str) -> list[int]:
    seeds: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        if not (first.isdecimal() and last.isdecimal()) or len(first + last) > 18:
            raise click.UsageError(
                f"seeds are whole numbers and ranges, as in 1,2 or 42-51: {text}"
            )
        if int(first) > int(last) or int(last) - int(first) >= MOST_SEEDS:
            raise click.UsageError(
                f"seeds {part}: from the lower to the higher, {MOST_SEEDS} at most"
            )
        seeds.update(dict.fromkeys(range(int(first), int(last) + 1)))
    return list(seeds)


def watched(jobs: Sequence[Job], cores: int) -> Iterator[tuple[Job, Outcome]]:
    """The outcomes in the order of the jobs, with a bar that moves if somebody can see it."""
    from dovetail.simulate.jobs import run_all

    if sys.stderr.isatty():
        with click.progressbar(length=len(jobs), label="Replaying", file=sys.stderr) as bar:
            done = {}
            for job, outcome in run_all(jobs, cores):
                done[job] = outcome
                bar.update(1)
    else:
        done = dict(run_all(jobs, cores))
    yield from ((job, done[job]) for job in jobs)


def document(
    results: Sequence[Result], protocol: str, aim: Mapping[str, int | None]
) -> dict[str, object]:
    from msgspec import to_builtins

    return {"protocol": protocol, **aim, "results": [to_builtins(each) for each in results]}


COUNTS = frozenset({"tasks", "dropped", "misses", "stretch"})


def lines(results: Sequence[Result]) -> list[str]:
    """A table for people: shares in percent, then counts, then what a decision took."""
    names = list(dict.fromkeys(name for result in results for name in result.mean))
    times = ("p50", "mean", "p99")
    shown = [name.replace("_", " ") for name in names]
    headers = ["workload", "policy", *shown, *(f"{name} us" for name in times)]
    rows = [
        [
            result.workload,
            result.policy,
            *(figure(result, name) for name in names),
            *(round(result.decision_us.get(name, 0)) for name in times),
        ]
        for result in results
    ]
    return table(headers, rows)


def figure(result: Result, name: str) -> str | int | None:
    value = result.mean.get(name)
    if value is None:
        return None
    if name in COUNTS:
        return round(value)
    spread = result.deviation.get(name)
    return f"{value:.2f}" if spread is None else f"{value:.2f} ±{spread:.2f}"
