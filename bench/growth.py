"""How costs grow with the fleet: processor time and memory of Dovetail's server, by size.

Each kind of question is asked over and over, without a change in between and with a claim before
each, which every kept result has to take in. Only the questions are measured. Processor time is
that of the server's process, all its threads: on a busy machine it tells more than the clock.
"""

import random
import statistics
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import orjson

from .client import Client, require
from .loading import allocation_document, load_in_bulk
from .queries import ABSENT_TRAIT, FULL_VM, IMPOSSIBLE_SUBTREE, SIMPLE, TOO_MANY_VCPU, Query
from .servers import Server, dovetail

SIZES = (1_000, 10_000)
FULL_SIZES = (*SIZES, 100_000)
LIMIT = 10
RANKED = (("rank", "scarcity"),)
QUERIES = (
    Query("simple", SIMPLE, LIMIT),
    Query("NUMA", FULL_VM, LIMIT),
    Query("simple, ranked", (*SIMPLE, *RANKED), LIMIT),
    Query("NUMA, ranked", (*FULL_VM, *RANKED), LIMIT),
    Query("nothing fits: VCPU", TOO_MANY_VCPU, LIMIT),
    Query("nothing fits: same_subtree", IMPOSSIBLE_SUBTREE, LIMIT),
    Query("nothing fits: trait", ABSENT_TRAIT, LIMIT),
)
WARM_UP = 5
SAMPLES = 40
CLAIMED_BEFORE = Query("claimed before each question", FULL_VM, 1)


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """One size. Milliseconds of processor time are medians, by name of the query."""

    hosts: int
    first_ms: Mapping[str, float]
    """Asked for the first time, after a restart."""
    still_ms: Mapping[str, float]
    """Asked again, nothing changed."""
    changing_ms: Mapping[str, float]
    """Asked again, after a claim."""
    load_cpu_seconds: float
    loaded_bytes: int
    restart_cpu_seconds: float
    """From the start of the process to the first answer."""
    restarted_bytes: int


def measure(hosts: int) -> GrowthPoint:
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as name:
        directory = Path(name) / "dovetail"
        with dovetail(directory) as server:
            before = cpu_seconds(server)
            load_in_bulk(server, hosts)
            ask(server.client(), QUERIES[0].path)
            load_cpu = cpu_seconds(server) - before
            loaded = server.resident_bytes()
        with dovetail(directory) as server:
            client = server.client()
            ask(client, QUERIES[0].path)
            restart_cpu, restarted = cpu_seconds(server), server.resident_bytes()
            first = {query.name: cpu_ms(server, client, query) for query in QUERIES}
            still = {query.name: repeated(server, client, query) for query in QUERIES}
            claims = Claims(client)
            changing = {
                query.name: repeated(server, client, query, claims.claim) for query in QUERIES
            }
    return GrowthPoint(hosts, first, still, changing, load_cpu, loaded, restart_cpu, restarted)


class Claims:
    """Claims one place after the other, each for a new consumer."""

    def __init__(self, client: Client) -> None:
        self._client, self._rng = client, random.Random(0)

    def claim(self) -> None:
        found = orjson.loads(ask(self._client, CLAIMED_BEFORE.path))["allocation_requests"][0]
        document = allocation_document(
            {uuid: part["resources"] for uuid, part in found["allocations"].items()}
        )
        consumer = UUID(int=self._rng.getrandbits(128), version=4)
        document |= {"mappings": found["mappings"]}
        self._client.insist("PUT", f"/allocations/{consumer}", document)


def ask(client: Client, path: str) -> bytes:
    status, answer = client.get(path)
    require(status, answer, path)
    return answer


def repeated(
    server: Server, client: Client, query: Query, change: Callable[[], None] = lambda: None
) -> float:
    for _ in range(WARM_UP):
        ask(client, query.path)
    taken = []
    for _ in range(SAMPLES):
        change()
        taken.append(cpu_ms(server, client, query))
    return statistics.median(taken)


def cpu_ms(server: Server, client: Client, query: Query) -> float:
    before = cpu_seconds(server)
    ask(client, query.path)
    return (cpu_seconds(server) - before) * 1000


def cpu_seconds(server: Server) -> float:
    """Processor time of all threads of the server's process, to the nanosecond."""
    tasks = Path(f"/proc/{server.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
