"""Node pool controller: marks nodes, enters them into the ledger, and tells their health.

One node at a time, and the status of a pool after its nodes. Labels and annotation go by
server-side apply. Taints are one list that everybody shares: they are read, changed and written
with the version that was read, again and again until nobody was in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, ClassVar

import msgspec
import structlog

from dovetail.aio.backoff import jittered
from dovetail.core.device import Device
from dovetail.core.errors import DovetailError, Malformed
from dovetail.kube.api.port import ApiConflict, ApiNotFound, KubeApi
from dovetail.kube.classes.sources import devices_of
from dovetail.kube.machines.judging import is_unjudged
from dovetail.kube.machines.metrics import WRITES
from dovetail.kube.machines.state import MachineState
from dovetail.kube.runtime.apply import FieldOwner
from dovetail.kube.runtime.conditions import as_documents, timestamp, with_condition
from dovetail.machines.documents import MachineNodePool, NodePoolStatus
from dovetail.machines.marks import (
    CONDITIONS,
    MarkChange,
    change_of,
    is_marked_node,
    marks_of,
    state_of,
    tainted,
)
from dovetail.machines.names import FINALIZER, MACHINE_GROUP, NOT_READY
from dovetail.podfit.objects import ApiResource, ApiStruct, KubeObject, Node, ResourceSlice
from dovetail.podfit.pod_sum import CPU, MEMORY, allocatable_of
from dovetail.podfit.readiness import is_ready
from dovetail.service.machine_units import MachineLedger

LOG = structlog.get_logger("dovetail.kube.machines")

MEBIBYTE = 2**20
MOST_TRIES = 50
"""At writing taints, before the node is left for later."""


NodeAmounts = tuple[int, int, tuple[Device, ...], bool]
"""CPUs, mebibytes and devices, and whether the node is ready."""


class WrittenTaints(ApiStruct, frozen=True, kw_only=True):
    taints: tuple[dict[str, str], ...] = ()


class WrittenNode(KubeObject, frozen=True, kw_only=True):
    """A node whose taints are as they were written, with all that others put into them."""

    API: ClassVar[ApiResource] = Node.API

    spec: WrittenTaints = WrittenTaints()


class NodePoolController:
    def __init__(
        self,
        api: KubeApi,
        state: MachineState,
        ledger: MachineLedger,
        slices_of: Callable[[str], tuple[ResourceSlice, ...]],
    ) -> None:
        self._api = api
        self._state = state
        self._ledger = ledger
        self._slices_of = slices_of
        self._fields = FieldOwner(api, "dovetail-node-pool")
        self._entered: dict[str, NodeAmounts | None] = {}
        """What the ledger was told of a node; None: something, by somebody, or maybe something. One
        that leaves stays here until the ledger has nothing of it."""

    async def begin(self) -> Iterable[str]:
        """A term begins: what another leader did since is not known. Nodes to look at."""
        self._entered = dict.fromkeys(await self._ledger.nodes())
        return list(self._entered)

    def leaving(self) -> Iterable[str]:
        """Nodes to look at when something was given back in the ledger, by whomever: they left
        their pools, and all that is known to be held there is held by others than units."""
        held = {unit.node for units in self._state.units.values() for unit in units.values()}
        return [name for name in self._entered if not self._is_in_pool(name) and name not in held]

    def _is_in_pool(self, name: str) -> bool:
        return name in self._state.owners and name in self._state.nodes

    async def work(self, name: str) -> None:
        """Make one node what its pool says, one worker a node: entering and leaving the ledger must
        not overtake each other."""
        await self._mark_as_owned(name)
        node = self._state.nodes.get(name)
        if node is not None and name in self._state.owners:
            await self._enter(node)
        elif name in self._entered and await self._ledger.leave_node(name):
            del self._entered[name]

    # -- marks -----------------------------------------------------------------------------------

    async def _mark_as_owned(self, name: str) -> None:
        """Give a node the marks of its pool, or none; two may be at it at a time."""
        node, owner = self._state.nodes.get(name), self._state.owners.get(name)
        if node is None:
            return
        wanted = None
        if owner is not None:
            state = state_of(node, owner.entry)
            wanted = marks_of(owner.accepted.spec, owner.machine.group, owner.entry, state)
        change = change_of(node, wanted)
        is_left = is_marked_node(node) and not is_unjudged(self._state, name)
        if change is not None and (wanted is not None or is_left):
            await self._mark(name, change)

    async def _mark(self, name: str, change: MarkChange) -> None:
        """Marks come before taints and go after them: what is tainted is always marked, so that a
        crash in between is found again."""
        wanted = change.marks
        if wanted is None and not change.are_taints_right:
            await self._taint(name, {})
        if not change.is_marked:
            await self._label(name, change)
        if wanted is not None and not change.are_taints_right:
            await self._taint(name, wanted.taints)

    async def _label(self, name: str, change: MarkChange) -> None:
        wanted = change.marks
        meta: dict[str, Any] = {}
        if wanted is not None:
            meta = {"labels": wanted.labels, "annotations": {MACHINE_GROUP: wanted.group}}
        # With its uid: an apply would make a node anew that has just been deleted.
        meta["uid"] = self._state.nodes[name].metadata.uid
        WRITES.labels("Node").inc()
        try:
            after = await self._fields.put(Node, name, {"metadata": meta})
        except (ApiConflict, ApiNotFound):
            return
        left = {key: None for key in change.stale_labels if key in after.metadata.labels}
        is_noted = wanted is None and MACHINE_GROUP in after.metadata.annotations
        if left or is_noted:
            # Somebody else put them there: an apply of ours takes only ours away.
            body = {"labels": left, "annotations": {MACHINE_GROUP: None} if is_noted else {}}
            await self._api.merge(Node, name, {"metadata": body})

    async def _taint(self, name: str, wanted: dict[str, str]) -> None:
        for attempt in range(1, MOST_TRIES + 1):
            try:
                node = await self._api.get(WrittenNode, name)
            except ApiNotFound:
                return
            taints = tainted([dict(each) for each in node.spec.taints], wanted)
            if taints is None:
                return
            version = {"resourceVersion": node.metadata.resource_version}
            WRITES.labels("Node").inc()
            try:
                await self._api.merge(
                    Node, name, {"metadata": version, "spec": {"taints": taints or None}}
                )
                return
            except ApiConflict:
                await asyncio.sleep(jittered(attempt, 0.01, 0.5))
        raise DovetailError(f"taints of node {name!r}: others write too often")

    # -- the ledger ------------------------------------------------------------------------------

    async def _enter(self, node: Node) -> None:
        name = node.metadata.name
        try:
            has = allocatable_of(node.status.allocatable)
            devices = devices_of(node, self._slices_of(name))
        except Malformed as error:
            LOG.warning("node not entered", node=name, error=str(error))
            return
        cpus, mebibytes = has.get(CPU, 0) // 1000, has.get(MEMORY, 0) // MEBIBYTE
        what = (cpus, mebibytes, devices, is_ready(node))
        if self._entered.get(name) != what:
            self._entered[name] = None  # It may be there even if no answer comes.
            await self._ledger.enter_node(name, cpus, mebibytes, devices, is_ready=is_ready(node))
            self._entered[name] = what

    # -- the pool --------------------------------------------------------------------------------

    async def tell_health(self, pool: MachineNodePool) -> None:
        """The status of a pool, if it changed; and the pool may go when its marks have gone. In the
        ledger its nodes are looked after by `work` alone."""
        if pool.metadata.deletion_timestamp is not None:
            await self._let_go(pool)
            return
        found = []
        unready = []
        for entry in pool.spec.node_pool:
            state = state_of(self._state.nodes.get(entry.name), entry)
            found.append({"name": entry.name, "condition": CONDITIONS[state]})
            if state == NOT_READY:
                unready.append(entry.name)
        conditions = with_condition(
            pool.status.conditions,
            "Ready",
            not unready,
            "NodesUnavailable" if unready else "NodesReady",
            f"not ready: {', '.join(unready)}" if unready else "all nodes are as they should be",
            generation=pool.metadata.generation,
            now=timestamp(datetime.now(UTC)),
        )
        status = {"nodePool": found, "conditions": as_documents(conditions)}
        if msgspec.convert(status, NodePoolStatus) == pool.status:
            return
        version = {"resourceVersion": pool.metadata.resource_version}
        WRITES.labels("MachineNodePool").inc()
        body = {"metadata": version, "status": status}
        # Newer than what is known here, or gone: it comes again with what is new.
        with suppress(ApiConflict, ApiNotFound):
            await self._api.merge(MachineNodePool, pool.metadata.name, body, sub="status")

    async def _let_go(self, pool: MachineNodePool) -> None:
        if FINALIZER not in pool.metadata.finalizers:
            return
        group = pool.spec.machine_group
        marked = [
            name
            for name, node in self._state.nodes.items()
            if node.metadata.annotations.get(MACHINE_GROUP) == group
            and name not in self._state.owners
        ]
        for name in marked:
            await self._mark_as_owned(name)
        left = [each for each in pool.metadata.finalizers if each != FINALIZER]
        body = {
            "metadata": {
                "resourceVersion": pool.metadata.resource_version,
                "finalizers": left or None,
            }
        }
        with suppress(ApiConflict, ApiNotFound):
            await self._api.merge(MachineNodePool, pool.metadata.name, body)
