"""Both servers, up and holding the same fleet.

The reference takes minutes to be loaded call by call. Its database is therefore kept below
var/bench, under a name made of the fleet and the reference's own versions, and every run
works on a copy.
"""

import hashlib
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.paths import ROOT

from . import fleet, servers
from .loading import Load, load_by_calls, load_in_bulk
from .report import progress
from .servers import Server

KEPT = ROOT / "var" / "bench"
REQUIREMENTS = ROOT / "requirements" / "reference.txt"
SAMPLE_HOSTS = 30


@dataclass(frozen=True, slots=True)
class Pair:
    reference: Server
    dovetail: Server
    loads: list[Load]


@contextmanager
def loaded_pair(hosts: int) -> Iterator[Pair]:
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as name, ExitStack() as stack:
        directory = Path(name)
        reference, theirs = _loaded_reference(stack, directory, hosts)
        progress(f"loading {hosts:,} hosts into dovetail, in bulk and call by call")
        with servers.dovetail(directory / "bulk") as server:
            bulk = load_in_bulk(server, hosts)
        # Both give equal candidates in another order each time.
        randomized = servers.dovetail(
            directory / "dovetail", "--max-randomize-allocation-candidates"
        )
        dovetail = stack.enter_context(randomized)
        yield Pair(reference, dovetail, [theirs, load_by_calls(dovetail, hosts), bulk])


def _loaded_reference(stack: ExitStack, directory: Path, hosts: int) -> tuple[Server, Load]:
    database = directory / "reference" / "placement.db"
    kept = KEPT / f"placement-{hosts}-{_digest(hosts)}.db"
    if kept.exists():
        progress(f"placement starts with {hosts:,} hosts loaded by an earlier run")
        database.parent.mkdir()
        shutil.copyfile(kept, database)
        load = _sample_load(directory / "sample", min(hosts, SAMPLE_HOSTS))
        return stack.enter_context(servers.reference(database.parent)), load
    progress(f"loading {hosts:,} hosts into placement call by call; this takes minutes")
    reference = stack.enter_context(servers.reference(database.parent))
    load = load_by_calls(reference, hosts)
    _keep(database, kept)
    return reference, load


def _sample_load(directory: Path, hosts: int) -> Load:
    """Time the loading in this run too, so that both sides are timed under the same conditions."""
    with servers.reference(directory) as server:
        return load_by_calls(server, hosts)


def _digest(hosts: int) -> str:
    digest = hashlib.sha256(REQUIREMENTS.read_bytes())
    for piece in fleet.ndjson(hosts):
        digest.update(piece)
    return digest.hexdigest()[:12]


def _keep(database: Path, kept: Path) -> None:
    kept.parent.mkdir(parents=True, exist_ok=True)
    unfinished = kept.with_suffix(".unfinished")
    with closing(sqlite3.connect(database)) as live, closing(sqlite3.connect(unfinished)) as copy:
        live.backup(copy)
    unfinished.rename(kept)
