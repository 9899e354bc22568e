"""Explanations among a thousand hosts: processor time of whole answers, for up to eight groups.

In this process and without a server: what is measured is the engine. Requests are random and hard:
amounts near what hosts have, traits that few or none have, groups tied together. They are asked in
several fleets: that of the other benchmarks; one in which hardly two hosts are in use alike; and
hosts of one provider each. Printed are the time of an explanation, of one that also says whom to
move, and the longest step between two looks at the clock, which is how long others on the event
loop wait.
"""

import asyncio
import gc
import random
import statistics
import time
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from dovetail.core.request import Affinity, Group, Request
from dovetail.core.tables import Names, Tables
from dovetail.engine import Snapshot
from dovetail.engine.moves import HeldRow
from dovetail.service import explanations

from .fleet import CUSTOM_TRAITS, Consumer, Host, Provider, generate

HOSTS = 1_000
QUESTIONS = 100
SEED = 16
SECONDS = 10.0
CLASSES = {"VCPU": (8, 24, 33), "MEMORY_MB": (8192, 65536), "DISK_GB": (100, 1900)}
DEVICES = {"FPGA": (1, 2), "SRIOV_NET_VF": (1, 4, 9)}


@dataclass(frozen=True, slots=True)
class ExplainRun:
    fleet: str
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
    return statistics.quantiles(times, n=100, method="inclusive")[98]


def measure(hosts: int = HOSTS, questions: int = QUESTIONS) -> Iterator[ExplainRun]:
    for name, fleet in fleets(hosts).items():
        snapshot, held = loaded(fleet)
        # The fleets that this process holds as objects are none of a server's.
        gc.collect()
        gc.freeze()
        yield _run(snapshot, held, name, range(1, 9), questions)
        yield _run(snapshot, held, name, range(100, 101), 2)


def fleets(hosts: int) -> dict[str, list[Host]]:
    usual = list(generate(hosts))
    dice = random.Random(SEED)
    return {
        "usual": usual,
        "scattered": [scattered(dice, host) for host in usual],
        "flat": [flat(dice, number) for number in range(hosts)],
    }


HEADINGS = (
    f"{'fleet':10}{'groups':8}{'explain p50':>12}{'p99':>8}{'longest':>9}"
    f"{'moves p50':>11}{'p99':>8}{'longest':>9}{'longest step':>14}  (ms of processor time)"
)


def line(run: ExplainRun) -> str:
    cells = [run.fleet.ljust(10), run.groups.ljust(8)]
    for times, width in ((run.plain_ms, 12), (run.moves_ms, 11)):
        cells.append(f"{statistics.median(times):{width}.1f}")
        cells.append(f"{percentile(times):8.1f}{max(times):9.1f}")
    cells.append(f"{run.longest_step_ms:14.1f}")
    return "".join(cells)


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
    groups = str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return ExplainRun(name, groups, plain, moves, steps.longest * 1000)


async def _explain(snapshot: Snapshot, request: Request, held: list[HeldRow] | None) -> None:
    found = await explanations.diagnose(snapshot, request, SECONDS)
    if held is None:
        return
    await explanations.with_moves(found, snapshot, request, KnownHolders(held), SECONDS)


class KnownHolders:
    """Consumers of which nothing is on record but what they hold."""

    def __init__(self, held: list[HeldRow]) -> None:
        self._held = held

    async def holders(self, _: Sequence[int]) -> list[HeldRow]:
        return self._held

    async def decisions(self, _: Sequence[str]) -> list[tuple[str, str]]:
        return []

    async def request_of(self, _: str) -> Request | None:
        return None


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


def scattered(dice: random.Random, host: Host) -> Host:
    """The host with a small consumer more on half of its providers, of whatever is left."""
    left = {each.uuid: Counter(each.inventories) for each in host.providers}
    for consumer in host.consumers:
        for uuid, amounts in consumer.allocations.items():
            left[uuid].subtract(amounts)
    more = []
    for uuid, amounts in left.items():
        taken = {name: dice.randint(0, amount // 2) for name, amount in amounts.items()}
        taken = {name: amount for name, amount in taken.items() if amount}
        if taken and dice.random() < 0.5:
            more.append(Consumer(str(UUID(int=dice.getrandbits(128))), {uuid: taken}))
    return Host(host.providers, (*host.consumers, *more))


def flat(dice: random.Random, number: int) -> Host:
    """A host of one provider, with one to eight consumers."""
    inventories = {
        "VCPU": dice.choice((32, 64)),
        "MEMORY_MB": dice.choice((131072, 262144)),
        "DISK_GB": 2000,
        "SRIOV_NET_VF": 8,
    }
    if dice.random() < 0.3:
        inventories["FPGA"] = dice.choice((1, 2))
    traits = dice.sample(CUSTOM_TRAITS, dice.randint(0, 3))
    uuid = str(UUID(int=dice.getrandbits(128)))
    provider = Provider(f"flat-{number:06d}", uuid, None, inventories, tuple(traits))
    consumers = [
        Consumer(
            str(UUID(int=dice.getrandbits(128))),
            {
                uuid: {
                    name: dice.randint(1, most // 8) for name, most in list(inventories.items())[:3]
                }
            },
        )
        for _ in range(dice.randint(1, 8))
    ]
    return Host((provider,), tuple(consumers))


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
