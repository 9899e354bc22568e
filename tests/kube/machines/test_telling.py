"""Queues that the operator keeps in the ledger: what is told, how often, and after failures."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec
from structlog.testing import capture_logs

from dovetail.kube.machines.telling import LONGEST_QUEUE, QueueKeeper
from dovetail.ledger import Ledger
from dovetail.ledger.database.protocol import LedgerBusy
from dovetail.ledger.machines import queue
from dovetail.ledger.machines.queue import GroupQueue
from dovetail.machines.line import GuestLine
from dovetail.machines.names import GUEST, role_labels
from dovetail.machines.selling.waiting import Waiting, WaitReason
from dovetail.podfit.objects import Pod
from dovetail.service.machine_units import MachineLedger


class CountedLedger(MachineLedger):
    """Counts writes of queues, and fails as many as it is told to."""

    writes = 0
    failures = 0

    async def set_queues(self, queues: Mapping[str, GroupQueue | None]) -> None:
        self.writes += 1
        if self.failures:
            self.failures -= 1
            raise LedgerBusy("away")
        await super().set_queues(queues)


def guest_pod(name: str, of: str = "small") -> Pod:
    meta = {
        "name": name,
        "namespace": "team",
        "uid": f"uid-{name}",
        "labels": role_labels("lab", of, GUEST),
        "creationTimestamp": "2026-11-18T09:00:00Z",
    }
    return msgspec.convert({"metadata": meta, "spec": {"containers": []}}, Pod)


def line_of(*waiting: str, holders: tuple[str, ...] = ()) -> GuestLine:
    pods = tuple(map(guest_pod, waiting))
    why = Waiting(WaitReason.SOLD_OUT, "all units are sold")
    return GuestLine(
        waiting=pods,
        reasons={each.metadata.uid: why for each in pods},
        holders=tuple(map(guest_pod, holders)),
    )


def told(ledger: Ledger, group: str = "lab") -> GroupQueue | None:
    found = ledger.read(queue.every).result().get(("", group))
    return None if found is None else found.queue


def names(ledger: Ledger, group: str = "lab") -> list[str] | None:
    found = told(ledger, group)
    return None if found is None else [each.pod for each in found.guests]


async def test_what_is_told_of_a_line(ledger: Ledger) -> None:
    keeper = QueueKeeper(MachineLedger(ledger))
    untold = msgspec.structs.replace(line_of("a", "b", holders=("c",)), reasons={})
    keeper.tell("lab", untold, {"small": 60})
    keeper.tell("web", line_of("x"), {})
    await keeper.write()
    found = told(ledger)
    assert found is not None
    assert (found.waiting, found.lent_seconds, found.pods) == (
        {"small": 2},
        {"small": 60},
        {"uid-c": "c"},
    )
    first, _ = found.guests
    assert (first.pod, first.namespace, first.type) == ("a", "team", "small")
    assert (first.since, first.reason, first.message) == ("2026-11-18T09:00:00Z", None, "")
    other = told(ledger, "web")
    assert other is not None
    assert (other.guests[0].reason, other.guests[0].message) == ("SoldOut", "all units are sold")


async def test_what_did_not_change_is_not_written(ledger: Ledger) -> None:
    counted = CountedLedger(ledger)
    keeper = QueueKeeper(counted)
    for pods in (("a",), ("b",), ("a", "b")):
        keeper.tell("lab", line_of(*pods), {})
    await keeper.write()
    assert (counted.writes, names(ledger)) == (1, ["a", "b"])
    keeper.tell("lab", line_of("a", "b"), {})
    keeper.drop("never-told")
    await keeper.write()
    assert counted.writes == 1
    keeper.drop("lab")
    await keeper.write()
    keeper.drop("lab")
    await keeper.write()
    assert (counted.writes, names(ledger)) == (2, None)


async def test_a_long_line_is_counted_and_its_beginning_is_told(ledger: Ledger) -> None:
    keeper = QueueKeeper(MachineLedger(ledger))
    keeper.tell("lab", line_of(*(f"p{number}" for number in range(LONGEST_QUEUE + 5))), {})
    await keeper.write()
    found = told(ledger)
    assert found is not None
    assert found.waiting == {"small": LONGEST_QUEUE + 5}
    assert (len(found.guests), found.guests[0].pod) == (LONGEST_QUEUE, "p0")


async def test_what_could_not_be_written_is_written_later(ledger: Ledger) -> None:
    """The newest of it, without anything new to tell."""
    counted = CountedLedger(ledger)
    counted.failures = 2
    keeper = QueueKeeper(counted, interval=0.01)
    with capture_logs() as logs:
        running = asyncio.create_task(keeper.run())
        keeper.tell("lab", line_of("a"), {})
        keeper.tell("web", line_of("x"), {})
        async with asyncio.timeout(20):
            while not counted.writes:  # noqa: ASYNC110
                await asyncio.sleep(0)
            keeper.tell("lab", line_of("b"), {})
            while names(ledger) != ["b"] or names(ledger, "web") != ["x"]:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait([running])
    assert [each["event"] for each in logs] == ["queues not written"] * 2


async def test_a_new_leader_writes_anew_and_takes_out_what_is_left(ledger: Ledger) -> None:
    before, after = QueueKeeper(MachineLedger(ledger)), QueueKeeper(MachineLedger(ledger))
    for group in ("lab", "web"):
        before.tell(group, line_of("a"), {})
    await before.write()
    assert await after.begin() == {"lab", "web"}
    after.tell("lab", line_of("b"), {})
    after.drop("web")
    await after.write()
    assert (names(ledger), names(ledger, "web")) == (["b"], None)
    assert await before.begin() == {"lab"}
    before.tell("lab", line_of("a"), {})
    await before.write()
    assert names(ledger) == ["a"]
