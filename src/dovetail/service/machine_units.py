"""Machine ledger: stock, pool nodes, units and queues of one cluster, for the operator of machines.

Units are claimed as everything is (`service/claims`): in one transaction, recorded and counted.
Whoever sells, and on however many replicas, nothing of a type or of a node is held twice.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from dovetail.aio.thread_results import result_of
from dovetail.core.claim import Claim
from dovetail.core.device import Device
from dovetail.ledger import Cursor, Ledger, Transaction
from dovetail.ledger.database.protocol import Change, Log, Operation, T
from dovetail.ledger.machines import moving, pool_nodes, queue, stock, units
from dovetail.ledger.machines.pool_nodes import MEMORY_MB, VCPU, NodeGpus
from dovetail.ledger.machines.queue import GroupQueue
from dovetail.ledger.machines.stock import TypeStock
from dovetail.ledger.machines.units import HeldUnit, UnitClaim
from dovetail.service import claims
from dovetail.service.decisions import ClaimDecision, RankedOption, outcome_of

ROOTS = frozenset((Change.TREE, Change.USAGE))
"""Changes of trees; the rest of the log is about names."""


class MachineLedger:
    """The machines of one cluster; with a name, several clusters may share a ledger."""

    def __init__(self, ledger: Ledger, cluster: str = "") -> None:
        self._ledger = ledger
        self._prefix = f"{cluster}/" if cluster else ""

    # -- what there is ---------------------------------------------------------------------------

    async def enter_node(
        self,
        node: str,
        vcpu: int,
        memory_mb: int,
        devices: Sequence[Device],
        *,
        is_ready: bool = True,
    ) -> None:
        """Make this what the node has, and say whether it is ready; costs a look if it is so
        already.

        What others put there in its stead is left as it is. Raises Malformed.
        """
        root = self._prefix + node
        totals = {VCPU: max(vcpu, 1), MEMORY_MB: max(memory_mb, 1)}

        def is_entered(tx: Transaction) -> bool:
            return pool_nodes.is_entered(tx, root, totals, devices, is_ready=is_ready)

        if not await self._read(is_entered):
            await self._write(
                lambda tx: pool_nodes.enter(tx, root, totals, devices, is_ready=is_ready)
            )

    async def leave_node(self, node: str) -> bool:
        """Take out what was put there and nobody holds; to be repeated while something is left.

        Whether nothing is.
        """
        root = self._prefix + node
        return await self._write(lambda tx: pool_nodes.leave(tx, root))

    async def nodes(self) -> frozenset[str]:
        """Those that were entered, and of which something is left."""
        found = await self._read(pool_nodes.entered)
        mine = (name.removeprefix(self._prefix) for name in found if name.startswith(self._prefix))
        return frozenset(name for name in mine if "/" not in name)

    async def set_stock(self, group: str, totals: Mapping[str, TypeStock]) -> None:
        """Make these the types of the group; costs a look if they are already.

        What is held of a type that has fewer, or is gone, stays on record.
        """
        if not await self._read(lambda tx: stock.is_set(tx, self._prefix, group, totals)):
            await self._write(lambda tx: stock.assign(tx, self._prefix, group, totals))

    async def drop_group(self, group: str) -> bool:
        """False while units of it are held; to be repeated while `groups` has it."""
        return await self._write(lambda tx: stock.drop(tx, self._prefix, group))

    async def groups(self) -> frozenset[str]:
        return frozenset(await self._read(lambda tx: stock.groups(tx, self._prefix)))

    async def gpus(self, nodes: Collection[str]) -> Mapping[str, NodeGpus]:
        """By node, whoever holds them; of a node that was not entered: none."""
        roots = {self._prefix + node: node for node in nodes}
        found = await self._read(lambda tx: pool_nodes.gpus(tx, roots))
        return {roots[root]: each for root, each in found.items()}

    # -- who holds what --------------------------------------------------------------------------

    async def move(self, take: Sequence[UnitClaim], release: Collection[str] = ()) -> None:
        """Give back what these consumers hold, then take, all or nothing, and durable.

        A guest takes over the GPUs of a sleeper that is released on its node. Who holds just this
        already is left as it is; who holds another unit gets this one in its stead. Raises
        UnitTaken, changing nothing.
        """
        if take:
            await self._take(UnitMove(self._prefix, take, release))
        elif release:
            await self.release(release)

    async def adopt(self, unit: UnitClaim) -> None:
        """Record what a bound guest has, even if that is more than there is to be sold.

        Raises UnitTaken if others hold what it has of the node.
        """
        await self._take(UnitMove(self._prefix, [unit], (), is_bound=True))

    async def _take(self, wanted: UnitMove) -> None:
        await claims.claim_named(self._ledger, wanted.take, wanted.decide)

    async def release(self, consumers: Collection[str]) -> None:
        """Give back all that these hold; those that hold nothing are passed over."""
        await claims.write(self._ledger, lambda tx: moving.release(tx, consumers))

    async def units(self) -> Mapping[str, HeldUnit]:
        """All that are held, by consumer."""
        return await self._read(lambda tx: units.held(tx, self._prefix))

    async def changes(self, cursor: Cursor | None) -> tuple[Cursor, bool]:
        """Whether units, or what nodes of pools have, may have changed since `cursor`."""

        def look(tx: Transaction, log: Log | None) -> bool:
            if log is None:
                return True
            roots = {root for kind, root in log if kind in ROOTS}
            return bool(roots) and units.concerns(tx, self._prefix, roots)

        return await result_of(self._ledger.follow(cursor, look))

    # -- who waits -------------------------------------------------------------------------------

    async def set_queues(self, queues: Mapping[str, GroupQueue | None]) -> None:
        """Make these the queues of these groups, all in one transaction; None: it has none."""
        await self._write(lambda tx: queue.assign(tx, self._prefix, queues))

    async def queued_groups(self) -> frozenset[str]:
        """Those that have a queue, whether they are sold or not."""
        return frozenset(await self._read(lambda tx: queue.groups(tx, self._prefix)))

    # -- the ledger ------------------------------------------------------------------------------

    async def _read(self, operation: Operation[T]) -> T:
        return await result_of(self._ledger.read(operation))

    async def _write(self, operation: Operation[T]) -> T:
        return await result_of(self._ledger.write(operation))


class UnitMove(msgspec.Struct):
    """One claim of units, and what is to be written down of it: sales, not stock."""

    prefix: str
    wanted: Sequence[UnitClaim]
    released: Collection[str]
    is_bound: bool = False
    taken: Sequence[Claim] = ()

    def take(self, tx: Transaction) -> None:
        self.taken = ()
        if self.is_bound:
            (unit,) = self.wanted
            self.taken = moving.adopt(tx, self.prefix, unit)
        else:
            self.taken = moving.move(tx, self.prefix, self.wanted, self.released)

    def decide(self, tx: Transaction, refusal: str | None) -> Iterator[tuple[str, ClaimDecision]]:  # noqa: ARG002
        taken = {each.consumer: each for each in self.taken}
        for unit in self.wanted:
            if not unit.is_stock and (refusal is not None or unit.consumer in taken):
                yield unit.consumer, unit_decision(unit, taken.get(unit.consumer), refusal)


def unit_decision(unit: UnitClaim, taken: Claim | None, refusal: str | None) -> ClaimDecision:
    """What to write down of a sale. The operator weighs the nodes: the ledger sees its choice."""
    what = f"a unit of {unit.shape.name!r} of {unit.group!r} on node {unit.node!r}"
    held = {} if taken is None else {at: dict(each) for at, each in taken.allocations.items()}
    return ClaimDecision(
        query=f"machine={unit.group}/{unit.shape.name}",
        outcome=outcome_of(refusal),
        candidates=1,
        chosen=RankedOption(1, held),
        words=f"Took {what}." if refusal is None else f"Asked for {what}, and refused: {refusal}",
    )
