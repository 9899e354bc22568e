"""What was written is not held on to: a bulk load is as large as the fleet."""

from __future__ import annotations

import gc
import weakref

from dovetail.ledger import Ledger, Transaction


class Plan:
    """Stands for what an operation brings along."""


def write(ledger: Ledger) -> weakref.ref[Plan]:
    plan = Plan()

    def operation(tx: Transaction) -> None:
        tx.rows("SELECT 1")
        assert plan

    ledger.write(operation).result()
    return weakref.ref(plan)


def test_an_operation_is_let_go_when_it_is_done(ledger: Ledger) -> None:
    held = write(ledger)
    ledger.read(lambda tx: tx.rows("SELECT 1")).result()
    gc.collect()
    assert held() is None
