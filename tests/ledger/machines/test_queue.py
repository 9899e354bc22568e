"""Queues of machine groups in the ledger, on SQLite and on PostgreSQL."""

from __future__ import annotations

from dovetail.ledger import Ledger
from dovetail.ledger.machines import queue
from dovetail.ledger.machines.queue import GroupQueue
from tests.service.machine_world import line, queued


def told(ledger: Ledger) -> dict[tuple[str, str], GroupQueue]:
    found = ledger.read(queue.every).result()
    return {key: each.queue for key, each in found.items()}


def tell(ledger: Ledger, prefix: str = "", **queues: GroupQueue | None) -> None:
    ledger.write(lambda tx: queue.assign(tx, prefix, queues)).result()


def test_a_queue_is_replaced_as_a_whole(ledger: Ledger) -> None:
    first = line(queued("a"), queued("b"), lent_seconds={"large": 3600}, pods={"u": "p"})
    tell(ledger, lab=first, web=line())
    assert told(ledger) == {("", "lab"): first, ("", "web"): line()}
    second = line(queued("b", reason=None, since=None))
    tell(ledger, lab=second)
    assert told(ledger) == {("", "lab"): second, ("", "web"): line()}
    tell(ledger, lab=None, unknown=None)
    assert told(ledger) == {("", "web"): line()}


def test_clusters_share_a_ledger(ledger: Ledger) -> None:
    """Each has its own groups, whatever they are called."""
    here, there = line(queued("a")), line(queued("b"))
    tell(ledger, "eu/", lab=here)
    tell(ledger, "us/", lab=there, web=None)
    assert told(ledger) == {("eu/", "lab"): here, ("us/", "lab"): there}
    assert ledger.read(lambda tx: queue.groups(tx, "eu/")).result() == ["lab"]
    tell(ledger, "us/", lab=None)
    assert ledger.read(lambda tx: queue.groups(tx, "us/")).result() == []
    assert told(ledger) == {("eu/", "lab"): here}


def test_followers_of_the_ledger_do_not_hear_of_it(ledger: Ledger) -> None:
    cursor, _ = ledger.follow(None, lambda _tx, _log: None).result()
    tell(ledger, lab=line(queued("a")))
    _, log = ledger.follow(cursor, lambda _tx, log: log).result()
    assert log is not None
    assert list(log) == []


def test_names_are_kept_as_they_are(ledger: Ledger) -> None:
    odd = line(queued("<b>\u202e\U0001f600\x00'\"", message="\x00\ud7ff\\ %s ?"))
    tell(ledger, lab=odd)
    assert told(ledger) == {("", "lab"): odd}
