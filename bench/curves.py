"""How well ranking places, over the whole curve: `python -m bench.curves [--seeds 42-51]`.

Each trace of openb, and mixes where 30% of the tasks name a model, replayed with first-fit,
fragmentation and scarcity. The last column is how far a policy is below the better of first-fit
and fragmentation where that is most, between 0 and 130% demand, and where.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from dovetail.cli.run.simulate import seeds_of
from dovetail.cli.support.output import table
from dovetail.simulate.jobs import Job, Source, run_all
from dovetail.simulate.named import BY_STOCK, EVENLY
from dovetail.simulate.report import Result, results

DATA = Path(__file__).parents[2] / "shared/data/openb"
TRACES = (
    "default",
    "gpuspec33",
    "multigpu20",
    "multigpu50",
    "gpushare40",
    "gpushare100",
    "cpu050",
    "cpu250",
)
MIXES = (
    ("default", EVENLY),
    ("default", BY_STOCK),
    ("cpu250", EVENLY),
    ("multigpu50", BY_STOCK),
    ("gpushare40", EVENLY),
)
NAMED = 30
BASELINES = ("first-fit", "fragmentation")
POLICIES = (*BASELINES, "scarcity")
DEMAND = 130


def main() -> None:
    options = _options()
    cells: list[tuple[str, int, str]] = [(trace, 0, BY_STOCK) for trace in TRACES]
    cells += [(trace, NAMED, drawn) for trace, drawn in MIXES]
    rows: list[Sequence[str]] = []
    for trace, named, drawn in cells:
        if options.only and trace not in options.only:
            continue
        jobs = list(_jobs(options, trace, named, drawn))
        done = dict(run_all(jobs, options.jobs))
        found = results((job, done[job]) for job in jobs)
        rows += [_row(each, found) for each in found]
        print("\n".join(table(HEADERS, rows[-len(found) :])), flush=True)
    print("\nAll of them:")
    print("\n".join(table(HEADERS, rows)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.curves", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="where the files of openb are")
    parser.add_argument("--seeds", type=seeds_of, default="42-51", help="as in 1,2 or 42-51")
    parser.add_argument("--only", nargs="*", choices=TRACES, help="these traces only")
    parser.add_argument("--jobs", type=int, default=2, help="cores to use")
    return parser.parse_args()


def _jobs(options: argparse.Namespace, trace: str, named: int, drawn: str) -> Iterator[Job]:
    nodes = options.data / "openb_node_list_gpu_node.csv"
    source = Source(nodes, options.data / f"openb_pod_list_{trace}.csv", "arrivals")
    for policy in POLICIES:
        for seed in options.seeds:
            yield Job(
                source=source,
                policy=policy,
                seed=seed,
                demand=DEMAND,
                load=None,
                named=named,
                drawn=drawn,
            )


HEADERS = ("workload", "policy", "first loss", "area", "at 100%", "at 130%", "worst", "at")


def _row(result: Result, of_workload: Sequence[Result]) -> Sequence[str]:
    gap, at = shortfall(result, [each for each in of_workload if each.policy in BASELINES])
    mean = result.mean
    figures = [mean[name] for name in ("first_loss", "area", "allocated_at_100", "allocated")]
    shown = [f"{figure:.2f}" for figure in figures]
    return result.workload, result.policy, *shown, f"{gap:+.2f}", f"{at}%"


def shortfall(result: Result, baselines: Sequence[Result]) -> tuple[float, int]:
    """How far above the best of the baselines, where that is least, and at which demand."""
    curves = [each.curve for each in baselines]
    gaps = [
        (point[1] - max(other[1] for other in others), round(point[0]))
        for point, *others in zip(result.curve, *curves, strict=False)
    ]
    return min(gaps)


if __name__ == "__main__":
    main()
