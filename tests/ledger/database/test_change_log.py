"""The change log: a reader that polls knows everything committed before, and reads no more."""

from __future__ import annotations

import contextlib
import uuid as uuids
from pathlib import Path

import pytest

from dovetail.core.provider import Provider
from dovetail.ledger import Cursor, Delta, Ledger, aggregates, open_ledger, providers, traits
from dovetail.ledger.database import sqlite
from dovetail.ledger.database.protocol import Transaction
from tests.ledger.world import claim, make


def start(ledger: Ledger) -> Cursor:
    delta = ledger.poll(None).result()
    assert delta is not None
    assert delta.everything
    return delta.cursor


def changes(ledger: Ledger, cursor: Cursor) -> Delta | None:
    delta = ledger.poll(cursor).result()
    # A place further on without news is no news.
    if delta is not None and delta == Delta(cursor=delta.cursor):
        return None
    return delta


def ids(delta: Delta | None) -> set[int]:
    assert delta is not None
    assert delta.trees is not None
    return {row[0] for row in delta.trees.providers}


def test_nothing_new_is_nothing(ledger: Ledger) -> None:
    make(ledger, "host", VCPU=4)
    assert changes(ledger, start(ledger)) is None


def test_a_changed_tree_is_read_again_as_a_whole(ledger: Ledger) -> None:
    host, _other = make(ledger, "host"), make(ledger, "other", VCPU=4)
    cursor = start(ledger)
    child = make(ledger, "child", host, VCPU=2)
    assert ids(changes(ledger, cursor)) == {host.id, child.id}


def test_a_claim_is_only_a_change_of_usage(ledger: Ledger) -> None:
    host = make(ledger, "host", VCPU=4)
    cursor = start(ledger)
    claim(ledger, (host, {"VCPU": 3}))
    delta = changes(ledger, cursor)
    assert delta is not None
    assert delta.trees is None
    assert [used for provider, _, used in delta.usage if provider == host.id] == [3]


def test_a_deleted_tree_is_told(ledger: Ledger) -> None:
    host = make(ledger, "host")
    cursor = start(ledger)
    ledger.write(lambda tx: providers.delete(tx, host.uuid)).result()
    delta = changes(ledger, cursor)
    assert delta is not None
    assert list(delta.removed_roots) == [host.id]


def test_a_move_touches_both_trees(ledger: Ledger) -> None:
    one, two = make(ledger, "one"), make(ledger, "two")
    child = make(ledger, "child", one)
    cursor = start(ledger)
    ledger.write(lambda tx: providers.move(tx, child, two.uuid, free=True)).result()
    assert ids(changes(ledger, cursor)) == {one.id, two.id, child.id}


def test_traits_and_aggregates_change_the_tree(ledger: Ledger) -> None:
    host = make(ledger, "host")

    def mark(provider: Provider) -> None:
        ledger.write(
            lambda tx: traits.assign(tx, provider, [traits.ensure(tx, "CUSTOM_A")[0]])
        ).result()
        ledger.write(lambda tx: aggregates.assign(tx, provider, [str(uuids.uuid4())])).result()

    cursor = start(ledger)
    mark(host)
    delta = changes(ledger, cursor)
    assert ids(delta) == {host.id}
    assert delta is not None
    assert delta.names is not None
    assert "CUSTOM_A" in delta.names.traits.values()


def test_a_failed_write_leaves_no_change(ledger: Ledger) -> None:
    make(ledger, "host")
    cursor = start(ledger)
    for _ in range(3):
        assert ledger.write(lambda tx: providers.create(tx, "host", "x", None)).exception()
    assert changes(ledger, cursor) is None


def test_a_reader_far_behind_loads_everything(ledger: Ledger) -> None:
    cursor = start(ledger)
    for n in range(6):
        make(ledger, f"host{n}")
    ledger.write(lambda tx: tx.run("DELETE FROM changes WHERE seq < 4")).result()
    ledger.write(trim_mark).result()
    delta = ledger.poll(cursor).result()
    assert delta is not None
    assert delta.everything


def trim_mark(tx: Transaction) -> None:
    """What trimming leaves behind on PostgreSQL; SQLite sees it by the numbers."""
    if tx.for_update:
        tx.run("UPDATE changes_trimmed SET xid = pg_current_xact_id()")


def test_claims_are_read_alike_be_they_few_or_many_or_in_a_large_tree(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite reads what is little in the caller's own thread, and the rest in another."""
    one, two = make(ledger, "one", VCPU=100), make(ledger, "two", VCPU=100)
    below = make(ledger, "below", one, PCPU=4)
    cursor = start(ledger)

    def read() -> dict[int, int]:
        delta = changes(ledger, cursor)
        assert delta is not None
        assert delta.trees is None
        return {provider: used for provider, _, used in delta.usage}

    claim(ledger, (one, {"VCPU": 1}))
    claim(ledger, (two, {"VCPU": 1}), (below, {"PCPU": 2}))
    few = {one.id: 1, two.id: 1, below.id: 2}
    assert read() == few
    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "FEW_INVENTORIES", 2)
        assert read() == few
    for _ in range(sqlite.FEW_CHANGES):
        claim(ledger, (one, {"VCPU": 1}))
    assert read() == few | {one.id: 1 + sqlite.FEW_CHANGES}


def test_sqlite_tells_a_few_claims_at_a_glance(tmp_path: Path) -> None:
    with contextlib.closing(open_ledger(f"sqlite:///{tmp_path}/ledger.db")) as ledger:
        host = make(ledger, "host", VCPU=4)
        cursor = start(ledger)
        claim(ledger, (host, {"VCPU": 3}))
        delta = ledger.glance(cursor)
        assert delta is not None
        assert [used for _, _, used in delta.usage] == [3]
        unchanged = ledger.glance(delta.cursor)
        assert unchanged is not None
        assert (unchanged.cursor, list(unchanged.usage)) == (delta.cursor, [])
        make(ledger, "other", VCPU=4)
        assert ledger.glance(delta.cursor) is None
