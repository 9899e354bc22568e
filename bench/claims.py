"""Claim loops: ask for candidates, claim one of them for a new consumer, and again.

Clients are processes of their own, so that they do not wait for one another. What they
claimed is released afterwards.
"""

import multiprocessing
import random
import time
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


def claim_runs(reference: Server, dovetail: Server, seconds: float) -> list[ClaimRun]:
    return [
        _run(server, query, clients, seconds)
        for query in QUERIES
        for clients in CLIENTS
        for server in (reference, dovetail)
    ]


def _run(server: Server, query: Query, clients: int, seconds: float) -> ClaimRun:
    context = multiprocessing.get_context("spawn")
    line = context.Barrier(clients)
    with ProcessPoolExecutor(clients, context, _remember, (line,)) as pool:
        seeds = [f"{query.name}/{clients}/{number}" for number in range(clients)]
        running = [pool.submit(_client, server.port, query.path, seconds, seed) for seed in seeds]
        tallies = [future.result() for future in running]
    _release(server, tallies)
    return ClaimRun(
        server.name,
        query.name,
        clients,
        sum(len(tally.consumers) for tally in tallies),
        sum(tally.refused for tally in tallies),
        sum(tally.failed for tally in tallies),
        sum(len(tally.consumers) / tally.seconds for tally in tallies),
    )


def _remember(line: Barrier) -> None:
    _start_line.append(line)


def _client(port: int, path: str, seconds: float, seed: str) -> Tally:
    client = Client(port)
    rng = random.Random(seed)
    client.get(path)
    consumers: list[str] = []
    refused = failed = 0
    _start_line[0].wait()
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        status, answer = client.get(path)
        if status != 200:
            failed += 1
            continue
        found = orjson.loads(answer)["allocation_requests"]
        if not found:
            # The fleet is full: what would follow is not a claim loop any more.
            break
        consumer = str(UUID(int=rng.getrandbits(128), version=4))
        status, _ = client.send("PUT", f"/allocations/{consumer}", _claim(rng.choice(found)))
        if status == 204:
            consumers.append(consumer)
        elif status == 409:
            refused += 1
        else:
            failed += 1
    elapsed = time.perf_counter() - start
    client.close()
    return Tally(consumers, refused, failed, elapsed)


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
