"""EMCO's cluster controllers are told of clusters that come, change and go."""

from __future__ import annotations

import asyncio

import pytest

from dovetail.intents.controllers import CallTerms
from dovetail.ledger import Ledger
from dovetail.ledger.intents import objects
from dovetail.service.intents.cluster_hook import ClusterHook
from dovetail.service.intents.controllers import announcing
from dovetail.service.intents.controllers.announcing import ClusterAnnouncer
from dovetail.service.intents.controllers.contracts.emco import ClusterEventType
from dovetail.service.intents.ports import KeptObject
from tests.support.loops import eventually

CLUSTER = "cluster-providers/p/clusters/c"
REGISTRATION = '{"metadata": {"name": "clm"}, "spec": {"host": "127.0.0.1", "port": 9}}'


async def test_they_are_told(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[list[str], str, str]] = []

    async def publish(
        registered: dict[str, object], cluster: str, event: ClusterEventType, **_: object
    ) -> None:
        told.append((list(registered), cluster, event.name))

    monkeypatch.setattr(announcing, "publish", publish)
    hook = ClusterAnnouncer(ClusterHook(lambda *_: pytest.fail("no snapshot")), ledger, CallTerms())
    kept = KeptObject(path=CLUSTER, kind="cluster", document={"metadata": {"name": "c"}})
    for operation in (
        lambda tx: objects.add(tx, "clm-controllers/clm", None, "clm-controller", REGISTRATION),
        lambda tx: hook.kept(tx, kept),
        lambda tx: hook.kept(tx, kept),
        lambda tx: hook.dropping(tx, CLUSTER),
    ):
        await asyncio.wrap_future(ledger.write(operation))
    task = asyncio.create_task(hook.run())
    await eventually(lambda: len(told) == 3)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert told == [(["clm"], "p+c", each) for each in ("CREATED", "UPDATED", "DELETED")]
