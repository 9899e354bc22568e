"""What ranking costs: the same limited queries without `rank`, and with each policy."""

import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path

from dovetail.engine.rank import POLICIES

from .client import Client
from .compare import sample
from .loading import load_in_bulk
from .queries import FULL_VM_10, SIMPLE_10, Query
from .servers import dovetail

HOSTS = 10_000
COMBINED = "fragmentation:3,spread:1"
WARM_UP = 5
ROUNDS = 12
PER_ROUND = 5


@dataclass(frozen=True, slots=True)
class RankRun:
    query: str
    rank: str
    plain_ms: list[float]
    ranked_ms: list[float]

    @property
    def plain_p50(self) -> float:
        return statistics.median(self.plain_ms)

    @property
    def ranked_p50(self) -> float:
        return statistics.median(self.ranked_ms)


def measure(hosts: int = HOSTS) -> list[RankRun]:
    with (
        tempfile.TemporaryDirectory(prefix="dovetail-bench-") as name,
        dovetail(Path(name) / "dovetail") as server,
    ):
        load_in_bulk(server, hosts)
        client = server.client()
        ranks = (*POLICIES, COMBINED)
        runs = [_run(client, query, rank) for query in (SIMPLE_10, FULL_VM_10) for rank in ranks]
        client.close()
        return runs


def _run(client: Client, query: Query, rank: str) -> RankRun:
    """Both in turn, so that whatever else the machine does falls on both."""
    path = f"{query.path}&rank={rank}"
    sample(client, query.path, WARM_UP)
    sample(client, path, WARM_UP)
    plain_ms: list[float] = []
    ranked_ms: list[float] = []
    for _ in range(ROUNDS):
        plain_ms += sample(client, query.path, PER_ROUND)
        ranked_ms += sample(client, path, PER_ROUND)
    return RankRun(query.name, rank, plain_ms, ranked_ms)
