"""Announcer of clusters: a hook of their documents, and an errand that tells EMCO's controllers.

`cli.run` puts it before the hook that registers clusters. Events are gathered while documents are
written, and published by the process that wrote them. One whose transaction fails after all is told
all the same: controllers look for themselves.
"""

from __future__ import annotations

import asyncio
from queue import Empty, SimpleQueue
from typing import Any

import msgspec
import structlog

from dovetail.aio.thread_results import result_of
from dovetail.core.errors import DovetailError, Malformed
from dovetail.intents.controllers import CallTerms, ControllerSpec, controller_spec
from dovetail.intents.names import ClusterName
from dovetail.ledger import Ledger, Transaction
from dovetail.ledger.intents import clusters, objects
from dovetail.ledger.intents.clusters import name_of_path
from dovetail.service.intents.controllers.cluster_events import publish
from dovetail.service.intents.controllers.contracts.emco import ClusterEventType
from dovetail.service.intents.ports import KeptObject, ObjectHook

LOG = structlog.get_logger("dovetail.controllers")

LOOK_SECONDS = 0.5


class ClusterAnnouncer:
    """An `ObjectHook` before another one."""

    def __init__(self, hook: ObjectHook, ledger: Ledger, terms: CallTerms) -> None:
        self._hook, self._ledger, self._terms = hook, ledger, terms
        self._events: SimpleQueue[tuple[ClusterName, ClusterEventType]] = SimpleQueue()
        """Put by threads of the ledger."""

    def kept(self, tx: Transaction, written: KeptObject) -> None:
        cluster = name_of_path(written.path)
        is_new = clusters.find(tx, cluster) is None
        self._hook.kept(tx, written)
        event = ClusterEventType.CREATED if is_new else ClusterEventType.UPDATED
        self._events.put((cluster, event))

    def dropping(self, tx: Transaction, path: str) -> None:
        self._hook.dropping(tx, path)
        self._events.put((name_of_path(path), ClusterEventType.DELETED))

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                cluster, event = self._events.get_nowait()
            except Empty:
                await asyncio.sleep(LOOK_SECONDS)
                continue
            try:
                told = await result_of(self._ledger.read(cluster_controllers))
                if told:
                    await publish(told, cluster, event, terms=self._terms)
            except DovetailError as error:
                LOG.warning("cluster event not told", cluster=cluster, error=str(error))


def cluster_controllers(tx: Transaction) -> dict[str, ControllerSpec]:
    """Those that want to be told."""
    found = {}
    for each in objects.of_kind(tx, "clm-controller"):
        spec = msgspec.json.decode(each.text, type=dict[str, Any]).get("spec") or {}
        try:
            found[each.name] = controller_spec(each.name, spec)
        except Malformed:
            continue
    return found
