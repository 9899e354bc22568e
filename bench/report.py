"""Puts what was measured into aligned tables, and into one JSON file."""

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from operator import attrgetter
from pathlib import Path

import orjson

from .claims import ClaimRun
from .compare import Comparison
from .costs import CostRun
from .growth import GrowthPoint
from .loading import Load
from .ranking import RankRun
from .scale import ScalePoint

Row = Sequence[str]


@dataclass(slots=True)
class Results:
    loads: list[Load] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    claims: list[ClaimRun] = field(default_factory=list)
    costs: list[CostRun] = field(default_factory=list)
    scale: list[ScalePoint] = field(default_factory=list)
    growth: list[GrowthPoint] = field(default_factory=list)
    ranking: list[RankRun] = field(default_factory=list)

    def write(self, path: Path) -> None:
        machine = {"cpus": os.cpu_count(), "python": platform.python_version()}
        document = {"machine": machine} | asdict(self)
        path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")


def progress(text: str) -> None:
    print(f"... {text}", file=sys.stderr, flush=True)


def table(heading: str, columns: Row, rows: Sequence[Row]) -> str:
    """The first column to the left, all others to the right."""
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
        for row in (columns, *rows)
    ]
    return "\n".join(["", heading, "-" * len(lines[0]), *lines, "-" * len(lines[0])])


def loading_table(loads: Sequence[Load]) -> str:
    """The first load is the one the others are compared with."""
    base = loads[0].hosts_per_second
    rows = [
        (
            load.way,
            f"{load.hosts:,}",
            f"{load.seconds:.1f} s",
            f"{load.hosts_per_second:,.1f}",
            _ratio(load.hosts_per_second / base),
        )
        for load in loads
    ]
    return table("Loading", ("way", "hosts", "time", "hosts/s", "ratio"), rows)


def comparison_table(comparisons: Sequence[Comparison]) -> str:
    rows = [
        (
            result.query,
            f"{result.candidates:,}",
            f"{result.reference_p50:,.1f} ms",
            f"{result.dovetail_p50:,.2f} ms",
            _ratio(result.reference_p50 / result.dovetail_p50),
        )
        for result in comparisons
    ]
    columns = ("query", "candidates", "placement p50", "dovetail p50", "ratio")
    warnings = [f"WARNING: {text}" for result in comparisons for text in result.warnings]
    return "\n".join([table("Candidates", columns, rows), *warnings])


def claims_table(runs: Sequence[ClaimRun]) -> str:
    """Runs come in pairs: the same loop on the reference, then on Dovetail."""
    rows = []
    for theirs, ours in list(pairwise(runs))[::2]:
        rows.append(
            (
                f"{ours.query}, {ours.clients} client{'s' * (ours.clients > 1)}",
                f"{theirs.loops_per_second:,.2f}",
                f"{ours.loops_per_second:,.1f}",
                _ratio(_quotient(ours.loops_per_second, theirs.loops_per_second)),
                f"{theirs.cpu_ms:,.1f} ms",
                f"{ours.cpu_ms:,.2f} ms",
                f"{theirs.refused}, {theirs.failed}",
                f"{ours.refused}, {ours.failed}",
            )
        )
    columns = (
        "claim loop",
        "placement/s",
        "dovetail/s",
        "ratio",
        "placement CPU",
        "dovetail CPU",
        "placement 409, 5xx",
        "dovetail 409, 5xx",
    )
    return table("Claims (candidates, then PUT /allocations), loops per second", columns, rows)


def costs_table(runs: Sequence[CostRun]) -> str:
    rows = [
        (
            f"{run.way}, {run.query}",
            f"{run.hosts:,}",
            f"{run.alone.cpu_ms:.2f} ms",
            f"{run.many.cpu_ms:.2f} ms",
            f"{run.ratio:.2f}x",
            f"{run.alone.loops_per_second:,.0f}",
            f"{run.many.loops_per_second:,.0f}",
            f"{_gone_wrong(run.alone)} | {_gone_wrong(run.many)}",
        )
        for run in runs
    ]
    alone, many = runs[0].alone.clients, runs[0].many.clients
    columns = (
        *("claim", "hosts", f"CPU, {alone} client", f"CPU, {many} clients", "ratio"),
        *(f"claims/s, {alone}", f"claims/s, {many}", "409, 5xx"),
    )
    return table("Processor time of the server per claim (dovetail alone)", columns, rows)


def _gone_wrong(run: ClaimRun) -> str:
    return f"{run.refused}, {run.failed}"


def scale_table(points: Sequence[ScalePoint]) -> str:
    base = points[0]
    rows = [
        (
            f"{point.hosts:,}",
            f"{point.providers:,}",
            f"{point.load_seconds:.1f} s",
            f"{point.first_answer_seconds:.2f} s",
            _megabytes(point.resident_bytes),
            f"{point.bytes_per_provider:,.0f}",
            f"{point.restart_seconds:.1f} s",
            _megabytes(point.restart_resident_bytes),
            f"{point.simple_p50:.2f} ms",
            f"{point.simple_p50 / base.simple_p50:.2f}x",
            f"{point.full_vm_p50:.2f} ms",
            f"{point.full_vm_p50 / base.full_vm_p50:.2f}x",
        )
        for point in points
    ]
    columns = (
        *("hosts", "providers", "load", "first answer", "RSS", "B/provider"),
        *("restart to answer", "RSS then", "simple p50", f"of {base.hosts:,}"),
        *("full VM p50", f"of {base.hosts:,}"),
    )
    return table("Scale (dovetail alone, limit 10)", columns, rows)


def ranking_table(runs: Sequence[RankRun]) -> str:
    rows = [
        (
            run.query,
            run.rank,
            f"{run.plain_p50:.2f} ms",
            f"{run.ranked_p50:.2f} ms",
            f"{run.ranked_p50 / run.plain_p50:.2f}x",
        )
        for run in runs
    ]
    columns = ("query", "rank", "without p50", "with p50", "ratio")
    return table("Ranking (dovetail alone, 10,000 hosts)", columns, rows)


def growth_tables(points: Sequence[GrowthPoint]) -> str:
    """What each size costs, and how many times that of the smallest; then what starting costs."""
    base = points[0]
    columns = ["processor time per query, limit=10"]
    for point in points:
        columns += [f"{point.hosts:,}", *([f"of {base.hosts:,}"] if point is not base else [])]
    rows = [
        _growth_row(f"{name}, {how}", [of(point)[name] for point in points])
        for how, of in (
            ("again", attrgetter("still_ms")),
            ("after a claim", attrgetter("changing_ms")),
            ("first", attrgetter("first_ms")),
        )
        for name in base.still_ms
    ]
    return "\n".join([table("Growth (dovetail alone)", columns, rows), _starting_table(points)])


def _growth_row(name: str, times: Sequence[float]) -> Row:
    cells = [name, f"{times[0]:.2f} ms"]
    for each in times[1:]:
        cells += [f"{each:.2f} ms", _ratio(each / times[0])]
    return cells


def _starting_table(points: Sequence[GrowthPoint]) -> str:
    rows = [
        (
            f"{point.hosts:,}",
            f"{point.load_cpu_seconds:.1f} s",
            f"{point.restart_cpu_seconds:.1f} s",
            _megabytes(point.loaded_bytes),
            _megabytes(point.restarted_bytes),
            f"{point.loaded_bytes / point.restarted_bytes:.2f}x",
        )
        for point in points
    ]
    columns = (
        *("hosts", "CPU of a load", "CPU from restart to answer"),
        *("RSS after the load", "after the restart", "ratio"),
    )
    return table("Starting (dovetail alone)", columns, rows)


def _quotient(above: float, below: float) -> float:
    return above / below if below else float("inf")


def _ratio(value: float) -> str:
    return f"{value:,.1f}x"


def _megabytes(amount: int) -> str:
    return f"{amount / 2**20:,.0f} MiB"
