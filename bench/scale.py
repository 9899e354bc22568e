"""Dovetail alone, with ever larger fleets: what loading, memory and answers cost then."""

import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from .client import require
from .compare import sample
from .fleet import PROVIDERS_PER_HOST
from .loading import load_in_bulk
from .queries import FULL_VM_10, SIMPLE_10
from .servers import Server, dovetail

SIZES = (1_000, 10_000)
FULL_SIZES = (*SIZES, 100_000)
WARM_UP = 10
SAMPLES = 60


@dataclass(frozen=True, slots=True)
class ScalePoint:
    """One fleet size. The restart numbers are of a second server over the same database."""

    hosts: int
    providers: int
    load_seconds: float
    first_answer_seconds: float
    resident_bytes: int
    bytes_per_provider: float
    restart_seconds: float
    restart_resident_bytes: int
    simple_ms: list[float]
    full_vm_ms: list[float]

    @property
    def simple_p50(self) -> float:
        return statistics.median(self.simple_ms)

    @property
    def full_vm_p50(self) -> float:
        return statistics.median(self.full_vm_ms)


def measure(hosts: int) -> ScalePoint:
    providers = hosts * PROVIDERS_PER_HOST
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as name:
        directory = Path(name) / "dovetail"
        with dovetail(directory) as server:
            empty = server.resident_bytes()
            load = load_in_bulk(server, hosts).seconds
            first = _first_answer(server)
            loaded = server.resident_bytes()
            simple, full_vm = _times(server)
        start = time.perf_counter()
        with dovetail(directory) as server:
            _first_answer(server)
            restart = time.perf_counter() - start
            restarted = server.resident_bytes()
    return ScalePoint(
        hosts,
        providers,
        load,
        first,
        loaded,
        (loaded - empty) / providers,
        restart,
        restarted,
        simple,
        full_vm,
    )


def _first_answer(server: Server) -> float:
    client = server.client()
    start = time.perf_counter()
    status, answer = client.get(SIMPLE_10.path)
    seconds = time.perf_counter() - start
    require(status, answer, SIMPLE_10.path)
    client.close()
    return seconds


def _times(server: Server) -> tuple[list[float], list[float]]:
    client = server.client()
    times = []
    for query in (SIMPLE_10, FULL_VM_10):
        sample(client, query.path, WARM_UP)
        times.append(sample(client, query.path, SAMPLES))
    client.close()
    return times[0], times[1]
