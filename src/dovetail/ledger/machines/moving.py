"""Moving units: the one transaction in which units of machines change hands, for `service`.

Units are given back and taken, all or nothing. Consumers are locked in the order of their UUIDs,
then providers in the order of their ids, as all claims do; which GPUs are free is looked up with
their devices held. So nothing is sold twice, whoever sells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from math import ceil

import msgspec

from dovetail.core.claim import Claim
from dovetail.core.errors import Refused
from dovetail.ledger import claims, devices, inventories, resource_classes
from dovetail.ledger.claiming.prepared import Place
from dovetail.ledger.database.loading import chunks, marks
from dovetail.ledger.database.protocol import Change, Transaction
from dovetail.ledger.devices import DEVICE_CLASS
from dovetail.ledger.machines.pool_nodes import (
    MACHINE,
    MACHINE_STOCK,
    MEMORY_MB,
    VCPU,
    GpuDevice,
    gpu_devices,
    named,
)
from dovetail.ledger.machines.stock import class_of, group_provider, stocked, type_of
from dovetail.ledger.machines.units import OtherClaim, UnitClaim, UnitTaken
from dovetail.machines.names import GPU_TYPE
from dovetail.podfit.pod_sum import CPU, MEMORY

LONGEST_OWNER = 255
"""Of a project or a user."""
MEBIBYTE = 2**20


class UnitHolder(msgspec.Struct):
    """A consumer, not to be changed by others before the transaction ends."""

    consumer_type: str | None
    held: dict[Place, int]


Units = dict[str, UnitHolder]
"""By consumer."""


def move(
    tx: Transaction, prefix: str, taken: Sequence[UnitClaim], released: Collection[str]
) -> list[Claim]:
    """Give back, then take, all or nothing; what was taken that was not held just so before.

    Raises UnitTaken; OtherClaim for a consumer that holds anything else.
    """
    holders = lock_holders(tx, {*released, *(each.consumer for each in taken)})
    wanted = UnitAllocations(tx, prefix, taken, holders, freed=released)
    news = [each for each in map(wanted.claim_of, taken) if not wanted.is_held(each)]
    ends = sorted((set(released) & holders.keys()) - {each.consumer for each in taken})
    try:
        claims.replace(tx, [*news, *map(ended, ends)])
    except Refused as error:
        raise wanted.shortage(error) from error
    return news


def ended(consumer: str) -> Claim:
    return Claim(consumer=consumer, project="", user="", allocations={}, check_generation=False)


def lock_holders(tx: Transaction, consumers: Collection[str]) -> Units:
    """Those that hold anything; in a fixed order, as all claims take them."""
    found: Units = {}
    names: dict[int, str] = {}
    for some in chunks(sorted(consumers)):
        for id_, uuid, consumer_type in tx.rows(
            f"""SELECT id, uuid, consumer_type FROM consumers
                WHERE uuid IN ({marks(len(some))}) ORDER BY uuid{tx.for_update}""",  # noqa: S608
            some,
        ):
            if consumer_type not in (MACHINE, MACHINE_STOCK):
                raise OtherClaim(uuid)
            names[id_] = uuid
            found[uuid] = UnitHolder(consumer_type, {})
    for ids in chunks(list(names)):
        for id_, provider, class_, used in tx.rows(
            f"""SELECT consumer_id, provider_id, class_id, used FROM allocations
                WHERE consumer_id IN ({marks(len(ids))})""",  # noqa: S608
            ids,
        ):
            found[names[id_]].held[provider, class_] = used
    return found


class UnitAllocations:
    """What the units of one move take, and where; the providers are locked from here on."""

    def __init__(
        self,
        tx: Transaction,
        prefix: str,
        taken: Sequence[UnitClaim],
        holders: Units,
        *,
        freed: Iterable[str],
    ) -> None:
        """`freed`: consumers that give back what they hold."""
        self._tx, self._prefix, self._taken, self._holders = tx, prefix, taken, holders
        self._freed = [holders[each] for each in freed if each in holders]
        names = {group_provider(prefix, each.group) for each in taken}
        self._named = named(tx, names | {prefix + each.node for each in taken})
        roots = self._roots_with_gpus()
        self._lock(roots)
        self._parts = self._read_parts(names)
        self._gpus = gpu_devices(tx, roots)
        self._give_back()

    def _roots_with_gpus(self) -> set[int]:
        nodes = {self._prefix + each.node for each in self._taken if each.shape.gpus}
        return {self._named[name][0] for name in nodes & self._named.keys()}

    def _lock(self, trees: Collection[int]) -> None:
        """All that is going to be looked at, in the order of ids, as all claims do."""
        if not self._tx.for_update:
            return
        ids = {id_ for id_, _ in self._named.values()}
        ids.update(place[0] for each in self._holders.values() for place in each.held)
        for some in chunks(sorted(trees)):
            among = marks(len(some))
            ids.update(
                id_
                for (id_,) in self._tx.rows(
                    f"SELECT id FROM providers WHERE root_id IN ({among})",  # noqa: S608
                    some,
                )
            )
        for some in chunks(sorted(ids)):
            among = marks(len(some))
            self._tx.rows(
                f"SELECT id FROM providers WHERE id IN ({among}) ORDER BY id{self._tx.for_update}",  # noqa: S608
                some,
            )

    def _read_parts(self, groups: Collection[str]) -> dict[tuple[str, str], int]:
        """By provider and class, how many parts a unit has."""
        found: dict[tuple[str, str], int] = {}
        for some in chunks(sorted(groups)):
            for provider, name, parts in self._tx.rows(
                f"""SELECT p.uuid, k.name, i.max_unit FROM providers p
                    JOIN inventories i ON i.provider_id = p.id
                    JOIN resource_classes k ON k.id = i.class_id
                    WHERE p.name IN ({marks(len(some))})""",  # noqa: S608
                some,
            ):
                found[provider, name] = parts
        return found

    def _give_back(self) -> None:
        """GPUs of everybody that gives back, or takes anew."""
        held: Counter[int] = Counter()
        for holder in self._holders.values():
            for (provider, _), amount in holder.held.items():
                held[provider] += amount
        for on_node in self._gpus.values():
            for device in on_node:
                device.free += held[device.id]

    def claim_of(self, unit: UnitClaim) -> Claim:
        """Raises UnitTaken if GPUs are missing, or what should be there is not known at all."""
        allocations = {**self._of_stock(unit), **self._of_node(unit), **self._of_gpus(unit)}
        return Claim(
            consumer=unit.consumer,
            project=(unit.group if unit.is_stock else unit.namespace)[:LONGEST_OWNER],
            user=(unit.shape.name if unit.is_stock else unit.user)[:LONGEST_OWNER],
            consumer_type=MACHINE_STOCK if unit.is_stock else MACHINE,
            allocations=allocations,
            check_generation=False,
        )

    def _of_stock(self, unit: UnitClaim) -> dict[str, dict[str, int]]:
        own, root = class_of(unit.shape.name), class_of(unit.shape.root)
        _, group = self._named.get(group_provider(self._prefix, unit.group), (0, ""))
        for name in (own, root):
            if (group, name) not in self._parts:
                raise UnitTaken(unit, name, f"there is no stock of {type_of(name)}")
        # A share that is no whole number of parts is counted as more than it is, never as less.
        shared = ceil(unit.shape.share * self._parts[group, root])
        return {group: {root: shared, own: self._parts[group, own]}}

    def _of_node(self, unit: UnitClaim) -> dict[str, dict[str, int]]:
        """Rounded down: nothing is refused that Kubernetes has room for."""
        if self._prefix + unit.node not in self._named:
            raise UnitTaken(unit, MEMORY_MB, "the ledger does not know the node")
        amounts = {
            VCPU: unit.shape.amounts[CPU] // 1000,
            MEMORY_MB: max(unit.shape.amounts[MEMORY] // MEBIBYTE, 1),
        }
        _, node = self._named[self._prefix + unit.node]
        return {node: {name: amount for name, amount in amounts.items() if amount}}

    def _of_gpus(self, unit: UnitClaim) -> dict[str, dict[str, int]]:
        """Its own first, then those just given back, then by name."""
        if not unit.shape.gpus:
            return {}
        root, _ = self._named[self._prefix + unit.node]
        own = self._holders.get(unit.consumer)
        found: dict[str, dict[str, int]] = {}
        left = unit.shape.gpus
        for device in in_order(self._gpus[root], [*([own] if own else []), *self._freed]):
            units = min(left, device.free)
            if units > 0:
                device.free -= units
                left -= units
                found[device.uuid] = {DEVICE_CLASS: units}
        if left:
            few = unit.shape.gpus - left
            words = f"{few} of {unit.shape.gpus} {GPU_TYPE} are free there, others hold the rest"
            raise UnitTaken(unit, GPU_TYPE, words)
        return found

    def is_held(self, claim: Claim) -> bool:
        """Whether the consumer has just this already."""
        holder = self._holders.get(claim.consumer)
        if holder is None or holder.consumer_type != claim.consumer_type:
            return False
        ids = {uuid: id_ for id_, uuid in self._named.values()}
        ids.update((each.uuid, each.id) for on_node in self._gpus.values() for each in on_node)
        classes = resource_classes.ids(
            self._tx, (name for amounts in claim.allocations.values() for name in amounts)
        )
        return holder.held == {
            (ids[uuid], classes[name]): amount
            for uuid, amounts in claim.allocations.items()
            for name, amount in amounts.items()
        }

    def shortage(self, error: Refused) -> UnitTaken:
        """Whose claim it was that the ledger refused, and why."""
        name = error.class_name
        for unit in self._taken:
            group = self._named[group_provider(self._prefix, unit.group)][1]
            node = self._named[self._prefix + unit.node][1]
            if error.provider == node:
                return UnitTaken(unit, name, f"too little {name} is left there")
            if error.provider == group and name in map(
                class_of, (unit.shape.name, unit.shape.root)
            ):
                return UnitTaken(unit, name, f"{type_of(name)} is sold out")
        # GPUs were chosen with their devices held.
        raise error


def in_order(listed: Sequence[GpuDevice], preferred: Iterable[UnitHolder]) -> list[GpuDevice]:
    """Those of the preferred holders first, one holder after the other."""
    found: dict[int, GpuDevice] = {}
    for holder in preferred:
        here = {provider for provider, _ in holder.held}
        found.update((each.id, each) for each in listed if each.id in here)
    found.update((each.id, each) for each in listed if each.id not in found)
    return list(found.values())


def adopt(tx: Transaction, prefix: str, unit: UnitClaim) -> list[Claim]:
    """Record a unit that is in use, even if there is no such stock: nothing more is sold then.

    Raises UnitTaken if others hold what it needs of the node.
    """
    lock_holders(tx, [unit.consumer])
    group = devices.by_name(tx, group_provider(prefix, unit.group))
    if group is None:
        return move(tx, prefix, [unit], ())
    before = inventories.of_provider(tx, group)
    names = {class_of(unit.shape.name), class_of(unit.shape.root)} & before.keys()
    classes = resource_classes.ids(tx, names)
    for name in names:
        each = before[name]
        room = max(each.inventory.capacity, each.used) + each.inventory.max_unit
        inventories.update(tx, group, classes[name], stocked(room, each.inventory.max_unit, 0))
    taken = move(tx, prefix, [unit], ())
    after = inventories.of_provider(tx, group)
    for name in names:
        was = before[name].inventory
        now = stocked(was.capacity, was.max_unit, after[name].used)
        inventories.update(tx, group, classes[name], now)
    tx.changed(Change.TREE, group.root_id)
    return taken


def release(tx: Transaction, consumers: Collection[str]) -> None:
    move(tx, "", (), consumers)
