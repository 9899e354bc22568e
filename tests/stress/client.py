"""One client process: claims, moves, swaps and releases until its time is up.

It asks for candidates and takes one of them, often one of an old answer, as a busy scheduler
would, so that claims are refused because others came first. It also looks, at any replica,
whether what was acknowledged to it is still there.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Sequence
from multiprocessing.synchronize import Barrier

from tests.stress.fleet import QUERIES
from tests.stress.history import Allocations, Doubt, History, Holding, State
from tests.stress.wire import Answer, LostError, UnreachableError, Wire

PROJECT = "stress"
SETTLING = 1.0
"""Seconds after which a database has surely ended the transactions of a dead server."""


PATIENCE = 300.0
"""Seconds that a client waits for servers, all in all, before it gives up."""

_start_line: list[Barrier] = []


def remember(line: Barrier) -> None:
    """Where all clients and whoever kills servers meet; called in each process of a client."""
    _start_line.append(line)


def run(name: str, ports: Sequence[int], seconds: float) -> History:
    """The history of one client that was answered for so many seconds.

    Those in which no server was there do not count: on a busy machine one takes long to start.
    """
    client = Client(name, ports)
    _start_line[0].wait(PATIENCE)
    answered, end = 0.0, time.monotonic() + seconds + PATIENCE
    try:
        while answered < seconds and (now := time.monotonic()) < end:
            if client.step():
                answered += time.monotonic() - now
    finally:
        client.wire.close()
    return client.history


class Client:
    def __init__(self, name: str, ports: Sequence[int]) -> None:
        self.name = name
        self.chance = random.Random(name)
        self.wire = Wire(ports, self.chance)
        self.history = History()
        self._offers: dict[str, list[Allocations]] = {}
        self._unsettled: list[Doubt] = []

    def step(self) -> bool:
        """Do something; whether it was answered."""
        actions = (self._claim, self._release, self._move, self._swap, self._look)
        action = self.chance.choices(actions, (50, 20, 12, 12, 6))[0]
        try:
            self._settle_doubts()
            action()
        except UnreachableError:
            self.history.counts["unreachable"] += 1
            time.sleep(0.05)
            return False
        except LostError:
            self.history.counts["lost reads"] += 1
            return False
        return True

    def _claim(self) -> None:
        offer = self._offer()
        if offer is None:
            self._release()
            return
        consumer = str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
        self._put(consumer, Holding(offer, 1))

    def _move(self) -> None:
        consumer, offer = self._own(), self._offer()
        if consumer and offer:
            self._put(consumer, Holding(offer, self.history.held[consumer].generation + 1))

    def _release(self) -> None:
        consumer = self._own()
        if consumer:
            self._write("DELETE", f"/allocations/{consumer}", None, {consumer: None})

    def _swap(self) -> None:
        """Two consumers in one write: a new one, and one that gives up or moves or is new too."""
        first, second = self._offer(), self._offer()
        if first is None or second is None:
            return
        newcomer = str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
        other = self._own() or str(uuid.UUID(int=self.chance.getrandbits(128), version=4))
        held = self.history.held.get(other)
        after: State = {newcomer: Holding(first, 1)}
        if held is None:
            after[other] = Holding(second, 1)
        else:
            moved = Holding(second, held.generation + 1)
            after[other] = self.chance.choice([None, moved])
        body = {consumer: self._claim_body(consumer, what) for consumer, what in after.items()}
        self._write("POST", "/allocations", body, after)

    def _look(self) -> None:
        consumer = self._own()
        if consumer is None:
            return
        found = self._found([consumer])
        if found != self.history.expected([consumer]):
            self._fault(f"{consumer}: {found} instead of {self.history.held[consumer]}")

    def _own(self) -> str | None:
        return self.chance.choice(list(self.history.held)) if self.history.held else None

    def _offer(self) -> Allocations | None:
        query = self.chance.choice(QUERIES)
        if query not in self._offers or self.chance.random() < 0.5:
            limit = self.chance.choice((1, 5, 20))
            answer = self.wire.call("GET", f"/allocation_candidates?{query}&limit={limit}")
            self.history.counts["questions"] += 1
            if answer.status != 200:
                self._fault(f"candidates of {query}: {answer}")
                return None
            self._offers[query] = [_amounts(one) for one in answer.body["allocation_requests"]]
        offers = self._offers[query]
        return self.chance.choice(offers) if offers else None

    def _put(self, consumer: str, after: Holding) -> None:
        body = self._claim_body(consumer, after)
        self._write("PUT", f"/allocations/{consumer}", body, {consumer: after})

    def _claim_body(self, consumer: str, after: Holding | None) -> dict[str, object]:
        held = self.history.held.get(consumer)
        allocations = after.allocations if after else {}
        return {
            "allocations": {name: {"resources": what} for name, what in allocations.items()},
            "consumer_generation": held.generation if held else None,
            "consumer_type": "INSTANCE",
            "project_id": PROJECT,
            "user_id": self.name,
        }

    def _write(self, method: str, path: str, body: object, after: State) -> None:
        try:
            answer = self.wire.call(method, path, body)
        except LostError:
            self.history.counts["unknown"] += 1
            self._unsettled.append(self.history.doubt(after, time.monotonic()))
            return
        if answer.status == 204:
            self.history.counts["writes"] += 1
            self.history.counts["claims"] += sum(what is not None for what in after.values())
            self.history.settle(after)
        elif answer.status == 409:
            self.history.counts[_refusal(answer)] += 1
        else:
            self._fault(f"{method} {path} {body}: {answer}")
            self.history.doubt(after, time.monotonic())

    def _settle_doubts(self) -> None:
        """A write seen to have happened counts as acknowledged; the rest waits for the audit."""
        now = time.monotonic()
        for doubt in [one for one in self._unsettled if now - one.since > SETTLING]:
            found = self._found(list(doubt.after))
            self._unsettled.remove(doubt)
            doubt.looks += 1
            if found == doubt.after:
                self.history.doubts.remove(doubt)
                self.history.settle(doubt.after)
            elif found == doubt.before:
                continue
            elif doubt.looks < 3:  # reads of two consumers are not one read
                doubt.since = now
                self._unsettled.append(doubt)
            else:
                self._fault(f"half done: {found} is neither {doubt.before} nor {doubt.after}")

    def _found(self, consumers: list[str]) -> State:
        return {consumer: holding(self.wire, consumer) for consumer in consumers}

    def _fault(self, text: str) -> None:
        self.history.faults.append(f"{self.name}: {text}")


def holding(wire: Wire, consumer: str) -> Holding | None:
    """What the server says that the consumer has."""
    body = wire.read(f"/allocations/{consumer}")
    if not body["allocations"]:
        return None
    return Holding(_amounts(body), body["consumer_generation"])


def _amounts(body: dict[str, dict[str, dict[str, dict[str, int]]]]) -> Allocations:
    return {name: dict(entry["resources"]) for name, entry in body["allocations"].items()}


def _refusal(answer: Answer) -> str:
    return "conflicts" if answer.code == "placement.concurrent_update" else "full"
