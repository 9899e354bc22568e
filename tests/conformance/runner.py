"""What `gabbits` and `client` have in common: options, and work spread over processes.

Processes, because test files read environment variables and every file needs its own.
"""

import argparse
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from tests.conformance import report, server

Item = TypeVar("Item")


def parser(description: str) -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--jobs", type=int, default=2, help="servers at the same time")
    options.add_argument("--verbose", action="store_true", help="whole messages of failures")
    options.add_argument(
        "--database", metavar="URL", help="of an empty PostgreSQL database; SQLite without it"
    )
    return options


def run(
    work: Callable[[Item, str, Path], report.Outcome],
    items: Sequence[Item],
    options: argparse.Namespace,
) -> int:
    """Call work(item, ledger to copy, nursery) for every item and print; the exit status."""
    outcomes = []
    context = multiprocessing.get_context("fork")
    with (
        server.prepared(options.database) as (ledger, nursery),
        ProcessPoolExecutor(options.jobs, mp_context=context) as pool,
    ):
        for outcome in pool.map(partial(_call, work, ledger, nursery), items):
            report.show(outcome, verbose=options.verbose)
            outcomes.append(outcome)
    return report.finish(outcomes)


def _call(
    work: Callable[[Item, str, Path], report.Outcome], ledger: str, nursery: Path, item: Item
) -> report.Outcome:
    return work(item, ledger, nursery)
