"""The command: `python -m bench [--part compare|claims|costs|scale|growth|rank|explain] ...`."""

import argparse
import signal
import sys
from pathlib import Path

from . import costs, explaining, growth, ranking, report, scale
from .claims import claim_runs
from .compare import compare
from .pair import loaded_pair
from .report import Results, progress

PARTS = ("compare", "claims", "costs", "scale", "growth", "rank", "explain")


def main() -> None:
    options = _options()
    # Unwinds the stack, so that a terminated bench leaves no server behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    parts = (options.part,) if options.part else PARTS
    results = Results()
    if "compare" in parts or "claims" in parts:
        _run_pair(options, parts, results)
    if "costs" in parts:
        _run_costs(options.claims, results)
    if "scale" in parts:
        _run_scale(scale.FULL_SIZES if options.scale_full else scale.SIZES, results)
    if "growth" in parts:
        _run_growth(growth.FULL_SIZES if options.scale_full else growth.SIZES, results)
    if "rank" in parts:
        progress(f"ranking among {ranking.HOSTS:,} hosts")
        results.ranking = ranking.measure()
        print(report.ranking_table(results.ranking), flush=True)
    if "explain" in parts:
        progress(f"explaining among {explaining.HOSTS:,} hosts")
        print(explaining.HEADINGS, flush=True)
        for run in explaining.measure():
            print(explaining.line(run), flush=True)
    if options.json:
        results.write(options.json)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--part", choices=PARTS, help="run this part only")
    parser.add_argument("--hosts", type=int, default=1000, help="hosts of the compared fleet")
    parser.add_argument(
        "--rounds", type=int, default=5, help="timed requests per query to placement; dovetail x6"
    )
    parser.add_argument("--seconds", type=float, default=8, help="length of each claim loop")
    parser.add_argument(
        "--reference-seconds", type=float, default=60, help="the same of placement's"
    )
    parser.add_argument(
        "--claims", type=int, default=costs.CLAIMS, help="claims whose processor time is taken"
    )
    parser.add_argument("--scale-full", action="store_true", help="go on to 100,000 hosts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all measurements there")
    return parser.parse_args()


def _run_pair(options: argparse.Namespace, parts: tuple[str, ...], results: Results) -> None:
    with loaded_pair(options.hosts) as pair:
        results.loads = pair.loads
        print(report.loading_table(pair.loads), flush=True)
        if "compare" in parts:
            progress("asking both in turn")
            results.comparisons = compare(pair.reference, pair.dovetail, options.rounds)
            print(report.comparison_table(results.comparisons), flush=True)
        if "claims" in parts:
            progress("claiming from both in turn")
            results.claims = claim_runs(
                pair.reference, pair.dovetail, options.reference_seconds, options.seconds
            )
            print(report.claims_table(results.claims), flush=True)


def _run_costs(claims: int, results: Results) -> None:
    for hosts in costs.SIZES:
        progress(f"processor time of claims with {hosts:,} hosts")
        results.costs += costs.measure(hosts, claims)
    print(report.costs_table(results.costs), flush=True)


def _run_scale(sizes: tuple[int, ...], results: Results) -> None:
    for hosts in sizes:
        progress(f"dovetail alone with {hosts:,} hosts")
        results.scale.append(scale.measure(hosts))
    print(report.scale_table(results.scale), flush=True)


def _run_growth(sizes: tuple[int, ...], results: Results) -> None:
    for hosts in sizes:
        progress(f"how costs grow: {hosts:,} hosts")
        results.growth.append(growth.measure(hosts))
    print(report.growth_tables(results.growth), flush=True)


if __name__ == "__main__":
    main()
