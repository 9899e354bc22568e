"""Readiness: of a server that is catching up with a load, and of one that cannot."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from dovetail.engine.snapshot import Snapshot
from dovetail.ledger import Ledger
from dovetail.rest.server.health import readyz
from dovetail.service.snapshots import SnapshotKeeper
from tests.ledger.world import make

AT_ONCE = "dovetail.service.snapshots.MOST_ROWS_AT_ONCE"


def call_on(ledger: Ledger, keeper: SnapshotKeeper) -> Any:
    return SimpleNamespace(backend=SimpleNamespace(ledger=ledger, keeper=keeper))


@asynccontextmanager
async def taking_in(keeper: SnapshotKeeper) -> AsyncIterator[None]:
    """While in it, a look has read what is new and does not get on with taking it in."""
    begun, may_end, append = threading.Event(), threading.Event(), Snapshot._append

    def waiting(snapshot: Snapshot, *rest: Any, **named: Any) -> None:
        begun.set()
        may_end.wait()
        append(snapshot, *rest, **named)

    with patch.object(Snapshot, "_append", waiting), patch(AT_ONCE, 0):
        look = asyncio.create_task(keeper.fresh())
        await asyncio.to_thread(begun.wait)
        try:
            yield
        finally:
            may_end.set()
            await look


async def test_a_server_that_takes_in_a_load_for_long_is_ready(ledger: Ledger) -> None:
    keeper = SnapshotKeeper(ledger)
    await keeper.fresh()
    make(ledger, "host", VCPU=1)
    async with taking_in(keeper):
        assert (await readyz(call_on(ledger, keeper), 0.05)).status == 200
    assert (await readyz(call_on(ledger, keeper), 30)).status == 200


async def test_a_server_that_has_no_snapshot_yet_is_not_ready(ledger: Ledger) -> None:
    make(ledger, "host", VCPU=1)
    keeper = SnapshotKeeper(ledger)
    async with taking_in(keeper):
        assert (await readyz(call_on(ledger, keeper), 0.05)).status == 503
    assert (await readyz(call_on(ledger, keeper), 30)).status == 200
