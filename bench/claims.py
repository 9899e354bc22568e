"""Claim loops: find a place and claim it for a new consumer, and again.

There are two ways: to ask for candidates and claim one of them (GET, then PUT), as every client of
Placement does, and Dovetail's own POST of a query. Clients are processes of their own, so that they
do not wait for one another. What they claimed is released afterwards.
"""

import multiprocessing
import random
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from uuid import UUID

import orjson

from .client import Client
from .loading import allocation_document
from .queries import FULL_VM_10, SIMPLE_10, Query
from .servers import Server

QUERIES = (SIMPLE_10, FULL_VM_10)
CLIENTS = (1, 8)
LINE_SECONDS = 300
OWN_CLAIMS = "/dovetail/v1/claims"

_start_line: list[Barrier] = []


@dataclass(frozen=True, slots=True)
class Tally:
    """What one client did: the consumers it placed, and claims and questions gone wrong."""

    consumers: list[str]
    refused: int
    failed: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ClaimRun:
    server: str
    query: str
    clients: int
    claimed: int
    refused: int
    failed: int
    loops_per_second: float
    cpu_ms: float
    """Of the server, for each claim that was tried."""


@dataclass(frozen=True, slots=True)
class Loop:
    """What each client does: so many claims, or as many as it can in so many seconds."""

    way: str
    query: Query
    seconds: float = float("inf")
    claims: float = float("inf")


def claim_runs(
    reference: Server, dovetail: Server, reference_seconds: float, seconds: float
) -> list[ClaimRun]:
    return [
        run(server, Loop("find-and-claim", query, seconds=lasting), clients)
        for query in QUERIES
        for clients in CLIENTS
        for server, lasting in ((reference, reference_seconds), (dovetail, seconds))
    ]


def run(server: Server, loop: Loop, clients: int) -> ClaimRun:
    context = multiprocessing.get_context("spawn")
    line = context.Barrier(clients + 1)
    with ProcessPoolExecutor(clients, context, _remember, (line,)) as pool:
        seeds = [f"{loop.query.name}/{clients}/{number}" for number in range(clients)]
        running = [pool.submit(_client, server.port, loop, seed) for seed in seeds]
        line.wait(LINE_SECONDS)
        before = server.cpu_seconds()
        tallies = [future.result() for future in running]
        cpu = server.cpu_seconds() - before
    _release(server, tallies)
    claimed = sum(len(tally.consumers) for tally in tallies)
    refused = sum(tally.refused for tally in tallies)
    failed = sum(tally.failed for tally in tallies)
    return ClaimRun(
        server.name,
        loop.query.name,
        clients,
        claimed,
        refused,
        failed,
        sum(len(tally.consumers) / tally.seconds for tally in tallies),
        cpu * 1000 / max(claimed + refused + failed, 1),
    )


def _remember(line: Barrier) -> None:
    _start_line.append(line)


def _client(port: int, loop: Loop, seed: str) -> Tally:
    client = Client(port)
    rng = random.Random(seed)
    client.get(loop.query.path)
    claim = WAYS[loop.way]
    consumers: list[str] = []
    outcomes = {"claimed": 0, "refused": 0, "failed": 0}
    _start_line[0].wait(LINE_SECONDS)
    start = time.perf_counter()
    while time.perf_counter() - start < loop.seconds and sum(outcomes.values()) < loop.claims:
        consumer = str(UUID(int=rng.getrandbits(128), version=4))
        outcome = claim(client, loop.query, consumer, rng)
        if outcome == "full":
            # What would follow is not a claim loop any more.
            break
        outcomes[outcome] += 1
        if outcome == "claimed":
            consumers.append(consumer)
    elapsed = time.perf_counter() - start
    client.close()
    return Tally(consumers, outcomes["refused"], outcomes["failed"], elapsed)


def _find_and_claim(client: Client, query: Query, consumer: str, rng: random.Random) -> str:
    status, answer = client.get(query.path)
    if status != 200:
        return "failed"
    found = orjson.loads(answer)["allocation_requests"]
    if not found:
        return "full"
    status, _ = client.send("PUT", f"/allocations/{consumer}", _claim(rng.choice(found)))
    return {204: "claimed", 409: "refused"}.get(status, "failed")


def _claim_at_once(client: Client, query: Query, consumer: str, _rng: random.Random) -> str:
    document = {"query": query.text, "consumer": consumer}
    status, _ = client.send("POST", OWN_CLAIMS, document)
    return {201: "claimed", 409: "refused"}.get(status, "failed")


WAYS: dict[str, Callable[[Client, Query, str, random.Random], str]] = {
    "find-and-claim": _find_and_claim,
    "POST claims": _claim_at_once,
}


def _claim(candidate: dict[str, dict[str, dict[str, dict[str, int]]]]) -> dict[str, object]:
    chosen = candidate["allocations"]
    document = allocation_document({uuid: part["resources"] for uuid, part in chosen.items()})
    return document | {"mappings": candidate["mappings"]}


def _release(server: Server, tallies: list[Tally]) -> None:
    client = server.client()
    for tally in tallies:
        for consumer in tally.consumers:
            client.insist("DELETE", f"/allocations/{consumer}")
    client.close()
