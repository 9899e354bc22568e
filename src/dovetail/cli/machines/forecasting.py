"""What `dovetail machines forecast` shows: how many more units of each type would really fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from dovetail.cli.machines import sources
from dovetail.cli.support.output import table
from dovetail.kube.machines.state import MachineState
from dovetail.machines.preview.forecast import forecast

COLUMNS = (
    *("MACHINE", "TYPE", "MAXIMUM", "SOLD", "HELD", "SHORT", "MORE", "MORE IF IDLE"),
    "BLOCKED BY",
)


def forecasts(state: MachineState, name: str | None) -> dict[str, Any]:
    return {
        "types": [
            {"machine": machine.metadata.name, **msgspec.to_builtins(each)}
            for machine in sources.chosen(state.machines.values(), name)
            for snapshot in [sources.snapshot_of(state, machine)]
            if snapshot is not None
            for each in forecast(snapshot)
        ]
    }


def lines(found: dict[str, Any]) -> Iterator[str]:
    if not found["types"]:
        yield "There is none."
        return
    rows = [
        (
            each["machine"],
            each["type"],
            *(each[key] for key in ("maximum", "sold", "held", "short")),
            count(each["more"]),
            count(each["more_if_idle"]),
            f"{each['node']}: {each['words']}" if each["node"] else each["words"],
        )
        for each in found["types"]
    ]
    yield from table(COLUMNS, rows)


def count(found: dict[str, int]) -> int | str:
    """Exact, or a range where to say which would take too long."""
    least, most = found["at_least"], found["at_most"]
    return least if least == most else f"{least} to {most}"
