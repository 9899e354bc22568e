"""Explanations among a thousand hosts: processor time of whole answers, for up to eight groups.

In this process and without a server: what is measured is the engine. Requests are random and hard:
amounts near what hosts have, traits that few or none have, groups tied together. Half of the fleet
is in use. Printed are the time of an explanation, of one that also says whom to move, and the
longest step between two looks at the clock, which is how long others on the event loop wait.
"""

import asyncio
import random
import statistics
import time
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass

from dovetail.core.request import Affinity, Group, Request
from dovetail.core.tables import Names, Tables
from dovetail.engine import Snapshot
from dovetail.engine.moves import HeldRow
from dovetail.service import explanations

from .fleet import CUSTOM_TRAITS, Host, generate

HOSTS = 1_000
QUESTIONS = 100
SEED = 16
SECONDS = 10.0
CLASSES = {"VCPU": (8, 24, 33), "MEMORY_MB": (8192, 65536), "DISK_GB": (100, 1900)}
DEVICES = {"FPGA": (1, 2), "SRIOV_NET_VF": (1, 4, 9)}


@dataclass(frozen=True, slots=True)
class ExplainRun:
    groups: str
    plain_ms: list[float]
    moves_ms: list[float]
    longest_step_ms: float

    @property
    def plain_p99(self) -> float:
        return percentile(self.plain_ms)

    @property
    def moves_p99(self) -> float:
        return percentile(self.moves_ms)


def percentile(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


def measure(hosts: int = HOSTS, questions: int = QUESTIONS) -> list[ExplainRun]:
    snapshot, held = loaded(list(generate(hosts)))
    return [
        _run(snapshot, held, "1 to 8", range(1, 9), questions),
        _run(snapshot, held, "100", range(100, 101), 2),
    ]


def table(runs: Sequence[ExplainRun]) -> str:
    lines = ["groups   explain p50   p99   with moves p50   p99   longest step (ms of processor)"]
    for run in runs:
        plain, moves = statistics.median(run.plain_ms), statistics.median(run.moves_ms)
        lines.append(
            f"{run.groups:7} {plain:12.1f} {run.plain_p99:6.1f} {moves:15.1f}"
            f" {run.moves_p99:6.1f} {run.longest_step_ms:10.1f}"
        )
    return "\n".join(lines)


def _run(
    snapshot: Snapshot, held: list[HeldRow], name: str, sizes: range, questions: int
) -> ExplainRun:
    dice = random.Random(SEED)
    steps = Steps()
    plain, moves = [], []
    for _ in range(questions):
        request = random_request(dice, dice.choice(sizes))
        plain.append(steps.timed(_explain(snapshot, request, None)))
        moves.append(steps.timed(_explain(snapshot, request, held)))
    return ExplainRun(name, plain, moves, steps.longest * 1000)


async def _explain(snapshot: Snapshot, request: Request, held: list[HeldRow] | None) -> None:
    found = await explanations.diagnose(snapshot, request, SECONDS)
    if held is None:
        return
    everything = held

    async def read(_: Sequence[int]) -> list[HeldRow]:
        return everything

    await explanations.with_moves(found, snapshot, request, read, SECONDS)


class Steps:
    """Times whole answers, and the longest time between two yields to the event loop."""

    def __init__(self) -> None:
        self.longest = 0.0

    def timed(self, work: Coroutine[None, None, None]) -> float:
        loop = asyncio.new_event_loop()
        task = loop.create_task(work)
        before = last = time.process_time()

        def tick() -> None:
            nonlocal last
            now = time.process_time()
            self.longest = max(self.longest, now - last)
            last = now
            if not task.done():
                loop.call_soon(tick)

        loop.call_soon(tick)
        loop.run_until_complete(task)
        after = time.process_time()
        self.longest = max(self.longest, after - last)
        loop.close()
        return (after - before) * 1000


def random_request(dice: random.Random, count: int) -> Request:
    groups = []
    for number in range(count):
        known = CLASSES if dice.random() < 0.5 else DEVICES
        names = dice.sample(sorted(known), 1 if known is DEVICES else dice.choice((1, 2)))
        traits = dice.sample(CUSTOM_TRAITS, 1) if dice.random() < 0.4 else []
        groups.append(
            Group(
                suffix=f"_{number}",
                resources={name: dice.choice(known[name]) for name in names},
                required=tuple(frozenset([trait]) for trait in traits),
            )
        )
    suffixes = [group.suffix for group in groups]
    tied = frozenset(dice.sample(suffixes, min(2, count)))
    return Request(
        groups=tuple(groups),
        affinities=(Affinity(tied),) if count > 1 and dice.random() < 0.5 else (),
        isolated=frozenset(suffixes) if dice.random() < 0.3 else frozenset(),
    )


def loaded(hosts: Sequence[Host]) -> tuple[Snapshot, list[HeldRow]]:
    """The fleet as a snapshot, and who holds what of it."""
    ids: dict[str, int] = {}
    classes: dict[str, int] = {}
    traits: dict[str, int] = {}
    tables = Tables([], [], [], [])
    held: list[HeldRow] = []
    for host in hosts:
        used: dict[tuple[str, str], int] = {}
        for consumer in host.consumers:
            for uuid, amounts in consumer.allocations.items():
                for name, amount in amounts.items():
                    used[uuid, name] = used.get((uuid, name), 0) + amount
        root = host.providers[0].uuid
        for provider in host.providers:
            own = ids.setdefault(provider.uuid, len(ids) + 1)
            parent = None if provider.parent is None else ids[provider.parent]
            tables.providers.append((own, provider.uuid, parent, ids[root]))
            for trait in provider.traits:
                tables.traits.append((own, traits.setdefault(trait, len(traits) + 1)))
            for name, total in provider.inventories.items():
                number = classes.setdefault(name, len(classes) + 1)
                taken = used.get((provider.uuid, name), 0)
                tables.inventories.append((own, number, total, 0, 1, 2**31 - 1, 1, 1.0, taken))
        held += [
            (consumer.uuid, ids[uuid], classes[name], amount)
            for consumer in host.consumers
            for uuid, amounts in consumer.allocations.items()
            for name, amount in amounts.items()
        ]
    for trait in CUSTOM_TRAITS:
        traits.setdefault(trait, len(traits) + 1)
    snapshot = Snapshot()
    names = Names({id_: name for name, id_ in classes.items()}, {i: n for n, i in traits.items()})
    snapshot.load(tables, names)
    return snapshot, held
