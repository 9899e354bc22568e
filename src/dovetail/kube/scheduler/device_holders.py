"""Device holders: who holds which devices, put together from four witnesses for the inventory.

The cluster state passes on what each witness says; what is to be believed goes to the inventory.
The ledger knows of everybody, but late. A pod's annotation speaks for bound pods, even if the
ledger was lost. A plan that is being carried out speaks before both. ResourceClaims speak for pods
of other schedulers, and of ours until they are gone. A device counts as held while any of them says
so: the inventory may be too careful for a moment, never too generous.

Pools of device plugins are also held by pods that ask for them directly, without a class. Of most
of these neither ledger nor annotations know, only what the pods ask for and where they are. Where
the ledger holds devices for a pod that asks for no class, as for units of machines, they are what
the pod uses directly: on its node it counts once, by the larger of both.

Of devices that a plugin's resource is listed by, by ID, the kubelet chooses those of such pods, and
they are known when the agent has told. Until then any of them may be such a pod's, so classes have
none of that resource there; a pod that a class gave one, and the kubelet another the same, would
be refused on the node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.kube.classes.extended_resources import Pools, pool_name
from dovetail.kube.scheduler.plans import amounts

Amounts = Mapping[str, int]
"""Units by device."""


DIRECT = "@/"
"""Ends the inventory's name for what a holder uses without a class; no node is called like that."""


def holder_of(name: str) -> str:
    """Whom the inventory means by a name."""
    return name.partition("@")[0]


class HeldOnNode(msgspec.Struct, frozen=True):
    node: str
    holdings: tuple[DeviceHolding, ...]


class DirectUse(msgspec.Struct, frozen=True):
    """What a holder uses without a class."""

    held: HeldOnNode
    is_claimed: bool
    """What the ledger holds for it is this very use, as far as it goes, and nothing besides."""

    def units(self, node: str, device: str) -> int:
        return amounts(self.held.holdings).get(device, 0) if node == self.held.node else 0


class DevicesById(msgspec.Struct, frozen=True):
    """What a node has of a resource whose devices are listed by ID."""

    open: tuple[DeviceHolding, ...]
    """All of those that work and are not with the kubelet."""
    with_kubelet: int = 0
    """Units, as are the following."""

    @property
    def working(self) -> int:
        return sum(each.units for each in self.open) + self.with_kubelet


class LedgerNews(msgspec.Struct):
    """What the ledger says of a node that it did not before."""

    freed: bool = False
    """Whether anything was given back."""
    consumers: set[str] = msgspec.field(default_factory=set)
    """For whom something else is claimed there now, be it nothing."""


class DeviceHolders:
    def __init__(self, inventory: DeviceInventory) -> None:
        self._inventory = inventory
        self._changed_nodes: set[str] = set()
        self._claims: dict[str, dict[str, Amounts]] = {}
        """What the ledger has, by consumer and node."""
        self._on_node: dict[str, set[str]] = {}
        """The consumers that the ledger has, by node."""
        self._pods: dict[str, HeldOnNode] = {}
        self._assumed: dict[str, HeldOnNode] = {}
        self._allocated: dict[str, Mapping[str, frozenset[str]]] = {}
        """What ResourceClaims have, by holder and node."""
        self._direct: dict[str, DirectUse] = {}
        self._direct_users: dict[str, set[str]] = {}
        """By node, those that use something there without a class."""
        self._by_id: dict[str, dict[str, DevicesById]] = {}
        """By node and resource."""
        self._pools: dict[str, Pools] = {}
        """By node."""
        self._names: dict[tuple[str, str], str] = {}
        """What the inventory calls a holder on a node: by its uid, unless it holds on several."""
        self._unknown: dict[str, dict[str, str]] = {}
        """By node and resource, who holds devices there of which it is not known which they are, as
        the inventory calls it."""

    def take_changed_nodes(self) -> frozenset[str]:
        """Nodes where something is held or free that was not when this was last asked, except by
        pods that ask for it directly."""
        taken, self._changed_nodes = frozenset(self._changed_nodes), set()
        return taken

    def claim_of(self, uid: str) -> tuple[str, Amounts] | None:
        """What the ledger has for a pod, as far as it was heard."""
        return next(iter(self._claims.get(uid, {}).items()), None)

    def on_ledger(self, node: str, devices: Mapping[str, Amounts]) -> LedgerNews:
        """All that is held on a node, by device and consumer."""
        now: dict[str, dict[str, int]] = {}
        for device, consumers in devices.items():
            for consumer, units in consumers.items():
                now.setdefault(consumer, {})[device] = units
        news = LedgerNews()
        for consumer in self._on_node.get(node, set()) | now.keys():
            before, after = self._claims.get(consumer, {}).get(node, {}), now.get(consumer, {})
            if before != after:
                news.freed = news.freed or is_less(after, before)
                news.consumers.add(consumer)
                self._set_claim(consumer, node, after)
        return news

    def on_release(self, uid: str) -> None:
        """The ledger holds nothing for this consumer any more: we saw to it."""
        for node in list(self._claims.get(uid, {})):
            self._set_claim(uid, node, {})

    def on_pod(self, uid: str, held: HeldOnNode | None) -> None:
        """What a bound pod's annotation says; None: nothing, or the pod is over or gone."""
        self._witness(self._pods, uid, held)

    def assume(self, uid: str, held: HeldOnNode) -> None:
        """A plan is being carried out."""
        self._witness(self._assumed, uid, held)

    def forget(self, uid: str) -> None:
        """The plan was carried out, or came to nothing: it holds no devices any more."""
        self._witness(self._assumed, uid, None)

    def on_resource_claims(self, holder: str, devices: Mapping[str, frozenset[str]]) -> None:
        """All that a holder has by ResourceClaims, by node."""
        before = self._allocated.pop(holder, {})
        if devices:
            self._allocated[holder] = devices
        for node in sorted(before.keys() | devices.keys()):
            if before.get(node) != devices.get(node):
                self._believe(holder, node)

    def use(self, uid: str, used: DirectUse | None) -> None:
        """What a pod uses without a class; None: nothing any more."""
        before = self._direct.pop(uid, None)
        if before is not None:
            users = self._direct_users[before.held.node]
            users.discard(uid)
            if not users:
                del self._direct_users[before.held.node]
        if used is not None:
            self._direct[uid] = used
            self._direct_users.setdefault(used.held.node, set()).add(uid)
        self._hold_directly(uid)
        nodes = {each.held.node for each in (before, used) if each is not None}
        self._changed_nodes |= nodes & self._claims.get(uid, {}).keys()
        for node in nodes & self._by_id.keys():
            self._hold_unknown(node)

    # What nodes have of resources that pods ask for directly, too.

    def pools(self, node: str) -> Pools:
        return self._pools.get(node, ())

    def has_devices_by_id(self, node: str) -> bool:
        return node in self._by_id

    def set_pools(self, node: str, pools: Pools) -> None:
        """All that the node has now; none if it is gone."""
        self._pools.pop(node, None)
        self._by_id.pop(node, None)
        if pools:
            self._pools[node] = pools
        resources = {each.resource for each in pools if each.by_id}
        if resources:
            self._by_id[node] = {name: devices_by_id(pools, name) for name in sorted(resources)}
        self._hold_unknown(node)

    def _hold_unknown(self, node: str) -> None:
        """Have the inventory hold all that pods may have been given that asked directly, while it
        is not known which of the devices they were given."""
        before, now = self._unknown.pop(node, {}), {}
        for resource, listed in self._by_id.get(node, {}).items():
            device = pool_name(resource)
            users = sorted(self._direct_users.get(node, ()))
            units = {uid: self._direct[uid].units(node, device) for uid in users}
            if sum(units.values()) > listed.with_kubelet:
                user = next(uid for uid, count in units.items() if count)
                now[resource] = f"{user}@{resource}{DIRECT}"
        for name in set(before.values()) - set(now.values()):
            self._inventory.release(name)
        for resource, name in now.items():
            listed = self._by_id[node][resource]
            free = tuple(each for each in listed.open if not self._is_held(node, each.device))
            self._inventory.hold(name, node, free)
        if now:
            self._unknown[node] = now

    def _is_held(self, node: str, device: str) -> bool:
        """Otherwise than by pods that ask for it directly."""
        holders = self._inventory.units_by_holder(node, device)
        return any(not name.endswith(DIRECT) for name in holders)

    def _hold_directly(self, uid: str) -> None:
        """Have the inventory hold what is used directly, beyond what is claimed for it."""
        used = self._direct.get(uid)
        beyond: tuple[DeviceHolding, ...] = ()
        if used is not None:
            beyond = used.held.holdings
            claimed = self._claims.get(uid, {}).get(used.held.node)
            if claimed and used.is_claimed:
                left = ((each, each.units - claimed.get(each.device, 0)) for each in beyond)
                beyond = tuple(replace(each, units=units) for each, units in left if units > 0)
        if used is not None and beyond:
            self._inventory.hold(uid + DIRECT, used.held.node, beyond)
        else:
            self._inventory.release(uid + DIRECT)

    @contextmanager
    def using(self, node: str, holdings: tuple[DeviceHolding, ...]) -> Iterator[None]:
        """The inventory as it would be if somebody used these without a class."""
        used = DirectUse(HeldOnNode(node, holdings), is_claimed=False)
        self.use("", used if holdings else None)
        try:
            yield
        finally:
            self.use("", None)

    @contextmanager
    def using_claim(
        self, uid: str, node: str, holdings: tuple[DeviceHolding, ...]
    ) -> Iterator[None]:
        """What is set aside as it would be if the pod used these, which are claimed for it."""
        before = self._direct.get(uid)
        self._direct[uid] = DirectUse(HeldOnNode(node, holdings), is_claimed=True)
        try:
            yield
        finally:
            if before is None:
                del self._direct[uid]
            else:
                self._direct[uid] = before

    def units_set_aside(self, node: str, allocatable: Callable[[str], int]) -> dict[str, int]:
        """By resource, of what is allocatable of it, units that are held otherwise than by pods
        that ask for them directly.

        Of devices by ID the kubelet leaves out what it was told that classes have. What it was not
        told yet is what it has too much of: it may have no more than work and no class has.
        """
        held: dict[str, Counter[str]] = {}
        for each in self.pools(node):
            holders = held.setdefault(each.resource, Counter())
            if each.by_id and not each.works:
                continue
            for name, units in self._inventory.units_by_holder(node, each.name).items():
                if not name.endswith(DIRECT):
                    holders[holder_of(name)] += units
        found = {
            resource: sum(
                max(units - self._units_counted(uid, node, resource), 0)
                for uid, units in holders.items()
            )
            for resource, holders in held.items()
        }
        for resource, listed in self._by_id.get(node, {}).items():
            left = listed.working - found[resource]
            found[resource] = max(allocatable(resource) - left, 0)
        return found

    def _units_counted(self, uid: str, node: str, resource: str) -> int:
        """Of what is claimed for a pod, units that count already as what it asks for."""
        used = self._direct.get(uid)
        return used.units(node, pool_name(resource)) if used and used.is_claimed else 0

    def _set_claim(self, uid: str, node: str, amounts: Amounts) -> None:
        if amounts:
            self._claims.setdefault(uid, {})[node] = amounts
            self._on_node.setdefault(node, set()).add(uid)
        else:
            self._claims[uid].pop(node)
            self._on_node[node].discard(uid)
            if not self._claims[uid]:
                del self._claims[uid]
        self._believe(uid, node)
        self._hold_directly(uid)

    def _witness(self, witness: dict[str, HeldOnNode], uid: str, held: HeldOnNode | None) -> None:
        before = witness.pop(uid, None)
        if held is not None:
            witness[uid] = held
        if before != held:
            for node in {each.node for each in (before, held) if each is not None}:
                self._believe(uid, node)

    def _believe(self, uid: str, node: str) -> None:
        """Have the inventory hold what the witnesses say of this holder on this node."""
        holdings = self._belief(uid, node)
        name = self._names.get((uid, node))
        if name is not None:
            if self._inventory.holdings_of(name) == (node, holdings):
                return
            self._inventory.release(name)
            del self._names[uid, node]
        if holdings:
            name = uid if self._inventory.holdings_of(uid) is None else f"{uid}@{node}"
            self._names[uid, node] = name
            self._inventory.hold(name, node, holdings)
        self._changed_nodes.add(node)
        if node in self._by_id:
            self._hold_unknown(node)

    def _belief(self, uid: str, node: str) -> tuple[DeviceHolding, ...]:
        found = self._held_here(uid, node)
        allocated = self._allocated.get(uid, {}).get(node, frozenset())
        beyond = allocated - {each.device for each in found} if allocated else ()
        return (*found, *(DeviceHolding(device, 1) for device in sorted(beyond)))

    def _held_here(self, uid: str, node: str) -> tuple[DeviceHolding, ...]:
        """What our own witnesses say."""
        told = [
            each.holdings
            for each in (self._assumed.get(uid), self._pods.get(uid))
            if each is not None and each.node == node
        ]
        claimed = self._claims.get(uid, {}).get(node)
        if claimed is None:
            return told[0] if told else ()
        # The same devices, told with the classes they were asked by, say more.
        same = (holdings for holdings in told if amounts(holdings) == claimed)
        plain = tuple(DeviceHolding(device, units, "") for device, units in sorted(claimed.items()))
        return next(same, plain)


def devices_by_id(pools: Pools, resource: str) -> DevicesById:
    mine = [each for each in pools if each.by_id and each.works and each.resource == resource]
    free = (DeviceHolding(each.name, each.units) for each in mine if not each.with_kubelet)
    return DevicesById(tuple(free), sum(each.units for each in mine if each.with_kubelet))


def is_less(now: Amounts, before: Amounts) -> bool:
    return any(now.get(device, 0) < units for device, units in before.items())
