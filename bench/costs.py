"""Dovetail alone: the processor time that a claim costs the server, with few and many clients.

No claim may be refused: more units are free than are claimed.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .claims import WAYS, ClaimRun, Loop, run
from .loading import load_in_bulk
from .queries import FULL_VM_10, SIMPLE_10, SINGLE_FPGA_10, Query
from .servers import Server, dovetail

SIZES = (1_000, 10_000)
QUERIES = (SINGLE_FPGA_10, SIMPLE_10, FULL_VM_10)
CLIENTS = (1, 16)
CLAIMS = 400
"""Of all clients together."""
WARM_UP = 50


@dataclass(frozen=True, slots=True)
class CostRun:
    """One way to claim at one size of the fleet, with a client alone and with many."""

    hosts: int
    way: str
    query: str
    alone: ClaimRun
    many: ClaimRun

    @property
    def ratio(self) -> float:
        return self.many.cpu_ms / self.alone.cpu_ms


def measure(hosts: int, claims: int = CLAIMS) -> list[CostRun]:
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as name:
        directory = Path(name) / "dovetail"
        options = ("--max-randomize-allocation-candidates",)
        with dovetail(directory, *options) as server:
            load_in_bulk(server, hosts)
            return list(_costs(server, hosts, claims))


def _costs(server: Server, hosts: int, claims: int) -> Iterator[CostRun]:
    for way in WAYS:
        for query in QUERIES:
            run(server, Loop(way, query, claims=WARM_UP), 1)
            alone, many = (
                run(server, Loop(way, query, claims=claims // clients), clients)
                for clients in CLIENTS
            )
            yield CostRun(hosts, way, _name(query), alone, many)


def _name(query: Query) -> str:
    return query.name.partition(",")[0]
