"""Draws allocation and fragmentation over demand, policies side by side; needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dovetail.simulate.errors import BadPlan
from dovetail.simulate.report import Result

SUFFIXES = (".png", ".svg")
WIDTH, HEIGHT = 10.0, 3.6
"""In inches: of the figure, and of each workload's line of it."""

STYLES = ("-", "--", "-.", ":")
"""So that lines differ without colour too."""


def check(path: Path, protocol: str) -> None:
    """Complain before the work is done, not after."""
    if path.suffix not in SUFFIXES:
        raise BadPlan(f"{path}: plots are written as {' or '.join(SUFFIXES)}")
    if protocol == "departures":
        raise BadPlan("plots go over demand, which the protocol departures does not raise")
    if not path.parent.is_dir():
        raise BadPlan(f"{path}: no such directory {path.parent}")
    if find_spec("matplotlib") is None:
        raise BadPlan("plots need matplotlib: install dovetail[plot]")


def draw(path: Path, results: Sequence[Result]) -> None:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    workloads = list(dict.fromkeys(result.workload for result in results))
    # The same figures give the same file: no time of writing and no random names in it.
    with mpl.rc_context({"svg.hashsalt": "dovetail"}):
        figure = Figure(figsize=(WIDTH, HEIGHT * len(workloads)), layout="constrained")
        grid = figure.subplots(len(workloads), 2, squeeze=False)
        for line, workload in zip(grid, workloads, strict=True):
            mine = [result for result in results if result.workload == workload]
            panel(line[0], f"{workload}: allocated", 1, mine)
            panel(line[1], f"{workload}: fragmented", 2, mine)
        metadata = {"Date": None} if path.suffix == ".svg" else {}
        figure.savefig(path, dpi=150, metadata=metadata)


def panel(axes: Any, title: str, column: int, results: Sequence[Result]) -> None:
    for number, result in enumerate(results):
        demand = [point[0] for point in result.curve]
        heights = [point[column] for point in result.curve]
        style = STYLES[number % len(STYLES)]
        axes.plot(demand, heights, style, label=result.policy, linewidth=1.5)
    axes.set_title(title, fontsize="medium")
    axes.set_xlabel("demand, % of capacity")
    axes.set_ylabel("% of capacity")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
