"""The command: `python -m bench.machines [--parts NAME,...] [--nodes N] [--guests N] ...`."""

from __future__ import annotations

import argparse
import asyncio
import signal
import statistics
import sys
from collections.abc import Callable, Sequence

from tests.kube.machines.bed import Bed

from ..report import progress, table
from . import admission, guests, planning, units

PARTS = ("planning", "ledger", "admission", "selling", "hand-over")
ON_CLUSTER = frozenset(PARTS[2:])
SIZES = (0.1, 0.3, 1.0)
"""Shares of the largest Machine, to show how the cost grows."""
SHOWN: dict[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "p90": lambda seconds: guests.percentile(seconds, 90),
    "worst": max,
}
"""Of hand-overs."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.machines", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--nodes", type=int, default=1000, help="of the largest Machine planned")
    parser.add_argument("--types", type=int, default=20)
    parser.add_argument("--guests", type=int, default=5000)
    parser.add_argument("--units", type=int, default=2000, help="sold in each ledger")
    parser.add_argument("--sold", type=int, default=guests.SOLD, help="at once, on the cluster")
    parser.add_argument("--hand-overs", type=int, default=guests.HAND_OVERS)
    parser.add_argument("--reactive", type=int, default=guests.REACTIVE)
    options = parser.parse_args()
    parts = options.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    if "planning" in parts:
        progress(f"plans: {options.nodes:,} nodes, {options.guests:,} guests")
        print(planning_table([planned(options, share) for share in SIZES]), flush=True)
    if "ledger" in parts:
        progress(f"ledgers: {options.units:,} units in each")
        print(ledger_table(asyncio.run(units.measure(options.units))), flush=True)
    if ON_CLUSTER & set(parts):
        progress("a cluster with an operator")
        with guests.running_bed() as bed:
            asyncio.run(on_cluster(bed, parts, options))


def planned(options: argparse.Namespace, share: float) -> planning.Planned:
    nodes, sold = int(options.nodes * share), int(options.guests * share)
    return planning.measure(nodes, options.types, sold)


async def on_cluster(bed: Bed, parts: Sequence[str], options: argparse.Namespace) -> None:
    if "admission" in parts:
        print(admission_table(await admission.measure(bed)), flush=True)
    if "selling" in parts:
        print(selling_table(await guests.sold_at_once(bed, options.sold)), flush=True)
    if "hand-over" in parts:
        found = await guests.hand_overs(bed, options.hand_overs, options.reactive)
        print(hand_over_table(found), flush=True)


def planning_table(found: Sequence[planning.Planned]) -> str:
    rows = [
        (
            f"{each.nodes:,}",
            f"{each.guests:,}",
            f"{each.stocked:.0f} ms",
            f"{each.sold:.0f} ms",
            f"{each.idle.percentile(50):.1f} ms",
            f"{each.event.percentile(50):.1f} ms",
            f"{each.event.percentile(99):.1f} ms",
            f"{each.line.percentile(50):.1f} ms",
        )
        for each in found
    ]
    columns = (
        *("nodes", "guests", "all stock placed", "all guests sold", "nothing to do p50"),
        *("one event p50", "worst", "as many wait in vain p50"),
    )
    return table(f"One plan, in processor time: {found[0].types} types", columns, rows)


def ledger_table(found: Sequence[units.UnitsSold]) -> str:
    rows = [
        (each.database, f"{each.stocked:,.0f}", f"{each.at_once:,.0f}", f"{each.single:,.0f}")
        for each in found
    ]
    columns = ("ledger", "stock taken", "sold at once", "sold one by one")
    return table("Units per second, each with a GPU, durable", columns, rows)


def admission_table(found: Sequence[admission.Created]) -> str:
    rows = [
        (
            f"{each.types}",
            f"{plain:.1f} ms",
            f"{ours:.1f} ms",
            f"{ours - plain:+.1f} ms",
            f"{ours / plain:.1f}x",
        )
        for each in found
        for ours, plain in [(each.guests.percentile(50), each.plain.percentile(50))]
    ]
    columns = ("types", "plain pod p50", "guest p50", "added", "ratio")
    return table("A pod created: what admission takes", columns, rows)


def selling_table(found: guests.Sold) -> str:
    heading = f"Pods per second: {found.guests} created at once, {found.nodes} nodes"
    rows = [
        ("plain, running on empty nodes", f"{found.plain:.0f}", ""),
        ("guests, created", f"{found.created:.0f}", ""),
        ("guests, sold and let go", f"{found.let_go:.0f}", f"{found.let_go / found.plain:.2f}x"),
        (
            "guests, running on full nodes",
            f"{found.running:.0f}",
            f"{found.running / found.plain:.2f}x",
        ),
    ]
    return table(heading, ("pods", "per second", "of plain"), rows)


def hand_over_table(found: guests.HandOvers) -> str:
    rows = [
        (name, f"{len(seconds)}", *(f"{each(seconds):,.2f} s" for each in SHOWN.values()))
        for name, seconds in (("dovetail", found.ours), ("reactive", found.reactive))
    ]
    ratios = (each(found.reactive) / each(found.ours) for each in SHOWN.values())
    rows.append(("ratio", "", *(f"{each:,.0f}x" for each in ratios)))
    return table(
        "From creation to Running, on nodes full of sleepers", ("scheme", "guests", *SHOWN), rows
    )


if __name__ == "__main__":
    main()
