"""The command: `python -m bench.console [--parts painting,load] [--hosts 10000]`."""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.support import browser

from ..growth import Claims
from ..loading import load_in_bulk
from ..report import progress
from ..servers import dovetail
from . import load, painting

PARTS = ("painting", "load")
PAINT_MS, UPDATE_MS = 1_000.0, 100.0
BARRED_HOSTS = 10_000
"""Larger fleets are to be usable; how long they may take is not said."""
SLOWER = 0.10


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.console", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--hosts", type=int, default=10_000)
    options = parser.parse_args()
    parts = options.parts.split(",")
    kept: list[bool] = []
    with (
        tempfile.TemporaryDirectory(prefix="dovetail-bench-") as folder,
        dovetail(Path(folder), "--policy", "open") as server,
    ):
        progress(f"loading {options.hosts:,} hosts")
        load_in_bulk(server, options.hosts)
        claims = Claims(server.client())
        if "painting" in parts:
            with browser.chromium() as chromium:
                found = painting.measure(chromium, server, claims)
            kept += told_painting(found, options.hosts)
        if "load" in parts:
            kept += told_load(load.measure(server, claims), options.hosts)
    return 0 if all(kept) else 1


def told(what: str, value: float, bar: float | None, unit: str) -> bool:
    is_kept = bar is None or value <= bar
    limit = "" if bar is None else f"(at most {bar:,.0f}){'' if is_kept else '  MISSED'}"
    print(f"{what:<58}{value:>12,.1f} {unit:<4} {limit}")
    return is_kept


def told_painting(found: painting.Painting, hosts: int) -> list[bool]:
    paint, update = (PAINT_MS, UPDATE_MS) if hosts <= BARRED_HOSTS else (None, None)
    return [
        told(f"first paint, {hosts:,} hosts, from the navigation", found.first_ms, paint, "ms"),
        told(f"an update, {hosts:,} hosts, from its arrival", found.update_ms, update, "ms"),
    ]


def told_load(found: load.ConsoleLoad, hosts: int) -> list[bool]:
    print(
        f"candidate queries, {hosts:,} hosts: {found.alone.median_cpu_ms:.2f} ms of processor time "
        f"and {found.alone.median_ms:.2f} ms alone, {found.watched.median_cpu_ms:.2f} ms and "
        f"{found.watched.median_ms:.2f} ms with {found.consoles} consoles open"
    )
    print(
        f"an open console: {found.console_cpu_ms:.2f} ms of processor time a second, "
        f"{found.bytes_per_second / 1000:.2f} KB/s in {found.changes_per_second:.1f} changes/s"
    )
    print(
        f"answers take {found.later * 100:+.1f}% (both share this machine's cores with the readers)"
    )
    what = f"{found.consoles} consoles make a query dearer by"
    return [told(what, found.slower * 100, SLOWER * 100, "%")]


if __name__ == "__main__":
    sys.exit(main())
