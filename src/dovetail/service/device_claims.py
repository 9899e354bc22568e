"""Device ledger: devices, classes and holders of one cluster, for schedulers of devices.

The Kubernetes scheduler, its reconciliation and its class controller call this. Whoever claims
here, and whoever claims through the Placement API, takes of the same units in the same
transactions: no device is held twice, whichever way it was asked for.
"""

from __future__ import annotations

import uuid as uuids
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dovetail.aio.thread_results import result_of
from dovetail.core.claim import Claim
from dovetail.core.device import Device
from dovetail.core.errors import Malformed, Refused, StaleGeneration
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.classes.documents import DeviceClass
from dovetail.ledger import Cursor, Ledger, Transaction, device_classes, devices
from dovetail.ledger import claims as ledger_claims
from dovetail.ledger.database.protocol import Change, Log, Operation, T
from dovetail.ledger.devices import DEVICE_CLASS, Claimed, HeldDevice
from dovetail.service import claims
from dovetail.service.claims import AlreadyClaimed, ConsumerDecisions, DeviceTaken
from dovetail.service.decisions import ClaimDecision, RankedOption, outcome_of
from dovetail.service.device_classes import as_document, of_document

POD = "POD"
ROOTS = frozenset((Change.TREE, Change.USAGE))
"""Changes of trees; the rest of the log is about names."""

UnitsHeld = Mapping[str, Mapping[str, Mapping[str, int]]]
"""Units by consumer by device by node."""


class HeldBy(msgspec.Struct, frozen=True):
    """What one consumer holds of devices."""

    is_pod: bool
    node: str
    devices: Mapping[str, int]
    """Units by device."""
    elsewhere: tuple[HeldBy, ...] = ()
    """On other nodes: not so for pods, but other clients may."""


class DeviceLedger:
    """The devices of one cluster; with a name, several clusters may share a ledger."""

    def __init__(self, ledger: Ledger, cluster: str = "") -> None:
        self._ledger = ledger
        self._prefix = f"{cluster}/" if cluster else ""
        self._nodes: dict[int, str] = {}
        """Roots that were told of: a tree that is gone can still be named."""

    # -- what there is ---------------------------------------------------------------------------

    async def publish(self, node: str, found: Sequence[Device]) -> None:
        """Make these the devices of the node; costs a look if they are already."""
        root = self._prefix + node
        if not await self._read(lambda tx: devices.is_published(tx, root, found)):
            await self._write(lambda tx: devices.publish(tx, root, found))

    def refuse_unfit(self, node: str, found: Sequence[Device]) -> None:
        """Raises Malformed for devices that `publish` would not take, whatever the ledger has."""
        devices.refuse_unfit(self._prefix + node, found)

    async def withdraw(self, node: str) -> None:
        """Devices that are held stay on record, with nothing more to be had of them."""
        root = self._prefix + node
        await self._write(lambda tx: devices.withdraw(tx, root))

    # -- who holds what --------------------------------------------------------------------------

    async def claim(
        self,
        holder: str,
        namespace: str,
        account: str,
        node: str,
        holdings: Iterable[DeviceHolding],
    ) -> None:
        """All or nothing, and durable. Raises AlreadyClaimed or DeviceTaken."""
        owner = empty_claim(holder, namespace, account)
        try:
            await self._claim(owner, node, list(holdings))
        except StaleGeneration as error:
            raise AlreadyClaimed(holder) from error

    async def correct(
        self,
        holder: str,
        namespace: str,
        account: str,
        node: str,
        holdings: Iterable[DeviceHolding],
    ) -> None:
        """Make this all that the holder has, whatever it had; at no time has it neither.

        For a holder of which it is settled what it has. Raises DeviceTaken, changing nothing.
        """
        owner = msgspec.structs.replace(
            empty_claim(holder, namespace, account), check_generation=False
        )
        await self._claim(owner, node, list(holdings))

    async def _claim(self, owner: Claim, node: str, holdings: Sequence[DeviceHolding]) -> None:
        root, units = self._prefix + node, units_of(owner.consumer, node, holdings)

        def decide(tx: Transaction, refusal: str | None) -> ConsumerDecisions:
            yield owner.consumer, device_decision(tx, root, holdings, refusal)

        await claims.claim_named(self._ledger, lambda tx: take(tx, owner, root, units), decide)

    async def claim_of(self, holder: str) -> Claimed:
        """To tell `release_claim` which claim is meant; empty if there is none."""
        return await self._read(lambda tx: devices.claimed(tx, holder))

    async def release_claim(self, holder: str, claim: Claimed) -> bool:
        """Give back this claim; False if it was given back before, whatever is claimed since."""
        return await self._write(lambda tx: devices.release(tx, holder, claim))

    async def release(self, holder: str) -> bool:
        """Give back everything; False if nothing was held. For a holder that is gone for good:
        where another claim may have been made meanwhile, `release_claim`."""
        return await claims.release(self._ledger, holder)

    async def holders(self) -> Mapping[str, HeldBy]:
        """Everything held of devices, by consumer: by pods, and by other clients of the ledger."""
        held = await self._read(devices.held)
        by_consumer: dict[str, list[HeldDevice]] = defaultdict(list)
        for each in held:
            if self._is_mine(each.node):
                by_consumer[each.consumer].append(each)
        return {consumer: self._held_by(mine) for consumer, mine in by_consumer.items()}

    def _held_by(self, held: Sequence[HeldDevice]) -> HeldBy:
        nodes: dict[str, dict[str, int]] = defaultdict(dict)
        for each in held:
            nodes[each.node.removeprefix(self._prefix)][each.device] = each.units
        is_pod = held[0].consumer_type == POD
        first, *others = (HeldBy(is_pod, *each) for each in sorted(nodes.items()))
        return msgspec.structs.replace(first, elsewhere=tuple(others))

    async def changes(self, cursor: Cursor | None) -> tuple[Cursor, UnitsHeld]:
        """Who holds what on the nodes that changed since `cursor`, one that this object gave; None:
        on all of them. A node of which nothing is held any more is told as empty."""
        newest, (roots, there, held) = await result_of(self._ledger.follow(cursor, changed_trees))
        mine = {root: node for root, node in there.items() if self._is_mine(node)}
        known = {} if cursor is None else self._nodes
        before = known if roots is None else {root: known[root] for root in roots & known.keys()}
        after = {root: node for root, node in known.items() if root not in before}
        self._nodes = {**after, **mine}
        told: dict[str, dict[str, dict[str, int]]] = {
            node.removeprefix(self._prefix): {} for node in (*before.values(), *mine.values())
        }
        for each in held:
            if self._is_mine(each.node):
                on_node = told[each.node.removeprefix(self._prefix)]
                on_node.setdefault(each.device, {})[each.consumer] = each.units
        return newest, told

    def _is_mine(self, root: str) -> bool:
        """Nodes have no slashes in their names: what has more of them is another cluster's."""
        return root.startswith(self._prefix) and "/" not in root.removeprefix(self._prefix)

    # -- device classes --------------------------------------------------------------------------

    async def put_class(self, definition: DeviceClass) -> None:
        """Define the class, whatever it was before."""
        document = as_document(definition)
        await self._write(lambda tx: device_classes.replace(tx, definition.name, document))

    async def drop_class(self, name: str) -> None:
        await self._write(lambda tx: device_classes.drop(tx, name))

    async def classes(self) -> Mapping[str, DeviceClass]:
        found = await self._read(device_classes.listing)
        return {each.name: of_document(each.name, each.document) for each in found}

    # -- the ledger ------------------------------------------------------------------------------

    async def _read(self, operation: Operation[T]) -> T:
        return await result_of(self._ledger.read(operation))

    async def _write(self, operation: Operation[T]) -> T:
        return await result_of(self._ledger.write(operation))


def empty_claim(holder: str, namespace: str, account: str) -> Claim:
    """A claim of a pod that nobody has claimed for, without what is claimed."""
    return Claim(
        consumer=uuid_of(holder),
        project=namespace,
        user=account,
        consumer_type=POD,
        allocations={},
    )


def units_of(holder: str, node: str, holdings: Iterable[DeviceHolding]) -> Counter[str]:
    """By device."""
    units: Counter[str] = Counter()
    for holding in holdings:
        units[holding.device] += holding.units
    if not units:
        raise Malformed(f"{holder} claims nothing on node {node!r}")
    return units


def uuid_of(holder: str) -> str:
    try:
        return str(uuids.UUID(holder))
    except ValueError as error:
        raise Malformed(f"{holder!r} is no UUID, and consumers are known by theirs") from error


def take(tx: Transaction, owner: Claim, root: str, units: Mapping[str, int]) -> None:
    """Claim so many units of each device in the tree of this root."""
    names = {devices.provider_name(root, device): device for device in units}
    places = devices.places(tx, list(names))
    for name, device in names.items():
        if name not in places:
            raise DeviceTaken(f"device {device!r} of node {root!r} is there no more")
    wanted = {uuid: {DEVICE_CLASS: units[names[name]]} for name, uuid in places.items()}
    try:
        ledger_claims.replace(tx, [msgspec.structs.replace(owner, allocations=wanted)])
    except Refused as error:
        device = next(names[name] for name, uuid in places.items() if uuid == error.provider)
        raise DeviceTaken(
            f"device {device!r} of node {root!r} has fewer than {units[device]} units left"
        ) from error


def device_decision(
    tx: Transaction, root: str, holdings: Sequence[DeviceHolding], refusal: str | None
) -> ClaimDecision:
    """What to write down: the classes asked for, and the devices chosen for them.

    Schedulers weigh the nodes before they come here: the ledger sees the one they chose.
    """
    classes: Counter[str] = Counter()
    chosen: Counter[str] = Counter()
    for holding in holdings:
        classes[holding.class_name or holding.device] += holding.units
        chosen[devices.provider_name(root, holding.device)] += holding.units
    uuids_by_name = devices.places(tx, list(chosen))
    names = ", ".join(repr(name) for name in dict.fromkeys(each.device for each in holdings))
    what = f"{names} of node {root!r}"
    return ClaimDecision(
        query="class=" + ",".join(f"{name}:{count}" for name, count in classes.items()),
        outcome=outcome_of(refusal),
        candidates=1,
        chosen=RankedOption(
            1, {uuid: {DEVICE_CLASS: chosen[name]} for name, uuid in uuids_by_name.items()}
        ),
        words=f"Took {what}." if refusal is None else f"Asked for {what}, and refused: {refusal}",
    )


def changed_trees(
    tx: Transaction, log: Log | None
) -> tuple[set[int] | None, dict[int, str], list[HeldDevice]]:
    """The roots of the trees that changed (None: any may have), those that are nodes with devices,
    and what is held there."""
    roots = None if log is None else {root for kind, root in log if kind in ROOTS}
    return roots, devices.nodes(tx, roots), devices.held(tx, roots)
