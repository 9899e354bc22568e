"""Both servers, up and holding the same fleet.

Each is loaded by its quickest way: Dovetail in bulk, the reference by its tables. How long it takes
to load them call by call, as clients of Placement do, is measured with some hosts of it.
"""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import reference_tables, servers
from .loading import Load, load_by_calls, load_in_bulk
from .report import progress
from .servers import Server

SAMPLE_HOSTS = 10


@dataclass(frozen=True, slots=True)
class Pair:
    reference: Server
    dovetail: Server
    loads: list[Load]


@contextmanager
def loaded_pair(hosts: int) -> Iterator[Pair]:
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as name, ExitStack() as stack:
        directory = Path(name)
        progress(f"loading {SAMPLE_HOSTS} hosts into both, call by call")
        with servers.reference(directory / "their-sample") as server:
            theirs = load_by_calls(server, SAMPLE_HOSTS)
        with servers.dovetail(directory / "our-sample") as server:
            ours = load_by_calls(server, SAMPLE_HOSTS)
        progress(f"loading {hosts:,} hosts into both")
        reference = stack.enter_context(servers.reference(directory / "reference"))
        reference_tables.fill(directory / "reference" / "placement.db", hosts)
        # Both give equal candidates in another order each time.
        randomized = servers.dovetail(
            directory / "dovetail", "--max-randomize-allocation-candidates"
        )
        dovetail = stack.enter_context(randomized)
        yield Pair(reference, dovetail, [theirs, ours, load_in_bulk(dovetail, hosts)])
