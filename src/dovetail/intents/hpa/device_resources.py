"""Device classes as resources of nodes: Hall's condition, so that packing counts devices exactly.

Devices may be of several classes, so free units of each class by itself say too little: with one
GPU that both classes select, one unit of each is one too many. Demands of classes can be met by
the devices of a node just if, for every set of classes, all that is asked of them together is no
more than the units of devices that any of them selects (Hall, for units: a cut of the flow). Each
such set becomes a resource: nodes have these units of it, pods ask for the sum. Only sets that are
closed (no further class selects nothing but these devices) and connected by devices in common
matter, the others follow from them. So classes that are apart, or nested in each other like a
chain, make one resource each.

Classes with members, and those whose units have to come from one device, are more than a flow. They
are counted by what can be formed of each alone, and by their parts; where that may be too little,
`is_exact` is false, and whoever packs has the devices of each node chosen before he believes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from dovetail.core.device import Device
from dovetail.core.errors import BadDevices
from dovetail.core.rows import Rows
from dovetail.core.selectors.selector import BadExpression, compile_selector
from dovetail.devices.allocation.class_columns import ClassColumns
from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import DeviceHolding, DeviceRequest
from dovetail.devices.classes.documents import DeviceClass
from dovetail.intents.fleet import ClusterNode
from dovetail.intents.hpa.demand import DeviceKey, DeviceUnits

PREFIX = "device-class/"
"""Of the resources: no name that Kubernetes' nodes have."""
MOST_SETS = 256
"""Of overlapping classes; beyond, single classes and all together are counted."""

DeviceUnitsByMask = dict[int, int]
"""Free units by the set of atoms that select the device, as bits."""


class DeviceDemands(msgspec.Struct, frozen=True):
    """All that pods of a group may ask for: classes, and numbers of units that containers want."""

    counts: Mapping[DeviceKey, frozenset[int]]

    @classmethod
    def of(cls, asked: Iterable[DeviceUnits]) -> DeviceDemands:
        found: dict[DeviceKey, set[int]] = {}
        for each in asked:
            found.setdefault(each.key, set()).add(each.count)
        return cls({key: frozenset(counts) for key, counts in found.items()})


class DeviceClassNames:
    """The classes that are asked for, as one cluster has them, each by a name of its own."""

    def __init__(self, demands: DeviceDemands, classes: Mapping[str, DeviceClass]) -> None:
        self.names: dict[DeviceKey, str] = {}
        self.columns = ClassColumns()
        for number, key in enumerate(demands.counts):
            if isinstance(key, str):
                self.names[key] = key
                if key in classes:
                    self._put(classes[key], classes)
            else:
                name = key.name if key.name and key.name not in classes else f"{key.name}#{number}"
                self.names[key] = name
                self._put(replace(key, name=name), classes)

    def _put(self, cls: DeviceClass, classes: Mapping[str, DeviceClass]) -> None:
        if cls.name not in self.columns:
            try:
                compile_selector(cls.selector)
            except BadExpression:
                return
            self.columns.put(cls)
            for member in cls.members:
                if member.name in classes:
                    self._put(classes[member.name], classes)

    def __iter__(self) -> Iterator[DeviceClass]:
        return (self.columns[name] for name in self.columns)

    def atoms(self, key: DeviceKey) -> Mapping[str, int] | None:
        """The classes that select devices of which one unit is made; None: it cannot be made."""
        return self.columns.leaves(self.names[key])


class FormedUnits(msgspec.Struct, frozen=True):
    """A class whose units are more than a flow."""

    key: DeviceKey
    resource: str
    size: int
    """Of a class whose units come from one device: how many every container asks for at once, if it
    is one number for all; else 0. Of a nested class: 1."""


class DeviceResources:
    """Of one cluster: what its nodes have of these resources, and what demands want of them."""

    def __init__(
        self,
        demands: DeviceDemands,
        classes: Mapping[str, DeviceClass],
        nodes: Sequence[ClusterNode],
    ) -> None:
        self._rows = Rows()
        self._inventory = DeviceInventory(self._rows)
        self.classes = DeviceClassNames(demands, classes)
        for cls in self.classes:
            self._inventory.set_class(cls)
        for node in nodes:
            self._enter(node)
        self._atoms = {
            key: self.classes.atoms(key) or {self.classes.names[key]: 1} for key in demands.counts
        }
        """By class asked for: the classes that select devices, and how many of each one unit takes;
        one that cannot be made stands for itself, and selects nothing."""
        names = dict.fromkeys(name for atoms in self._atoms.values() for name in atoms)
        self._bits = {name: 1 << at for at, name in enumerate(names)}
        self._selects = {
            bit: compile_selector(self.classes.columns[name].selector)
            for name, bit in self._bits.items()
            if name in self.classes.columns
        }
        free = [self._units_by_mask(node, _free_devices(node)) for node in nodes]
        taken = [self._units_by_mask(node, _held_devices(node)) for node in nodes]
        masks = sorted({mask for units in (*free, *taken) for mask in units})
        sets, is_complete = _hall_sets([*self._bits.values()], masks)
        self._sets = {members: self._name_of(members) for members in sets}
        self._formed = tuple(self._forms(demands))
        self.is_exact = is_complete and all(self._is_alone(each, masks) for each in self._formed)
        self.capacities = [
            self._capacity(node, units) for node, units in zip(nodes, free, strict=True)
        ]
        """What is free, by node and resource."""
        self.held = [self._sums(units) for units in taken]
        """What others hold of it."""

    def _enter(self, node: ClusterNode) -> None:
        """Devices of a list that no node can have are handed out to nobody."""
        name = node.node.metadata.name
        with suppress(BadDevices):
            self._inventory.set_node(name, node.devices)
            held = [
                DeviceHolding(each.name, each.units)
                for each in node.devices
                if each.name in node.held_devices
            ]
            self._inventory.hold(f"others on {name}", name, held)

    def _units_by_mask(self, node: ClusterNode, devices: Iterable[Device]) -> DeviceUnitsByMask:
        found: DeviceUnitsByMask = {}
        if self._rows.find(node.node.metadata.name) is None:
            return found
        for device in devices:
            attributes = device.attributes
            mask = sum(bit for bit, selects in self._selects.items() if selects(attributes))
            if mask:
                found[mask] = found.get(mask, 0) + device.units
        return found

    def _forms(self, demands: DeviceDemands) -> Iterator[FormedUnits]:
        for key, counts in demands.counts.items():
            cls = self.classes.columns.get(self.classes.names[key])
            if cls is None or self.classes.atoms(key) is None:
                continue
            resource = f"{PREFIX}{cls.name} (formed)"
            if cls.members:
                yield FormedUnits(key, resource, 1)
            elif cls.single_device and counts != {1}:
                yield FormedUnits(key, resource, next(iter(counts)) if len(counts) == 1 else 0)

    def _is_alone(self, formed: FormedUnits, masks: Sequence[int]) -> bool:
        """Whether what can be formed of the class by itself is all that there is to it."""
        ours = self._mask(formed.key)
        theirs = [self._mask(key) for key in self._atoms if key != formed.key]
        return formed.size > 0 and not any(
            mask & ours and mask & other for mask in masks for other in theirs
        )

    def _mask(self, key: DeviceKey) -> int:
        return sum(self._bits[name] for name in self._atoms[key])

    def _sums(self, units_by_mask: DeviceUnitsByMask) -> dict[str, int]:
        return {
            name: sum(units for mask, units in units_by_mask.items() if mask & members)
            for members, name in self._sets.items()
        }

    def _capacity(self, node: ClusterNode, free: DeviceUnitsByMask) -> dict[str, int]:
        found = self._sums(free)
        row = self._rows.find(node.node.metadata.name)
        for each in self._formed:
            cls = self.classes.columns[self.classes.names[each.key]]
            if row is None or not each.size:
                found[each.resource] = 0
            elif cls.members:
                found[each.resource] = int(self._inventory.free(cls.name)[row])
            else:
                selects = self._selects[self._bits[cls.name]]
                found[each.resource] = sum(
                    device.units // each.size
                    for device in _free_devices(node)
                    if selects(device.attributes)
                )
        return found

    def _name_of(self, members: int) -> str:
        return PREFIX + "|".join(name for name, bit in self._bits.items() if bit & members)

    def amounts(self, devices: Sequence[DeviceUnits]) -> tuple[tuple[str, int], ...]:
        """What a pod with these demands asks for of each resource."""
        wanted = dict.fromkeys(self._bits.values(), 0)
        formed: dict[str, int] = {}
        for each in devices:
            for name, count in self._atoms[each.key].items():
                wanted[self._bits[name]] += count * each.count
            for form in self._formed:
                if form.key == each.key and form.size:
                    requests = each.count // form.size
                    formed[form.resource] = formed.get(form.resource, 0) + requests
        found = {
            name: sum(count for bit, count in wanted.items() if bit & members)
            for members, name in self._sets.items()
        }
        return tuple((name, amount) for name, amount in {**found, **formed}.items() if amount)

    def choose(
        self, node: str, pods: Sequence[Sequence[DeviceUnits]]
    ) -> tuple[tuple[DeviceHolding, ...], ...] | None:
        """Devices of the node for these pods, by pod; None: none were found."""
        asked = [(pod, each) for pod, listed in enumerate(pods) for each in listed]
        names = [self.classes.names[each.key] for _, each in asked]
        if any(name not in self.classes.columns for name in names):
            return None
        # Requests go by number, by which their devices are found again.
        chosen = self._inventory.choose(
            node,
            [
                DeviceRequest(name, each.count, str(number))
                for number, (name, (_, each)) in enumerate(zip(names, asked, strict=True))
            ],
        )
        if chosen is None:
            return None
        found: list[list[DeviceHolding]] = [[] for _ in pods]
        for holding in chosen:
            pod, each = asked[int(holding.container)]
            found[pod].append(replace(holding, container=each.container))
        return tuple(map(tuple, found))


def _free_devices(node: ClusterNode) -> Iterator[Device]:
    return (each for each in node.devices if each.healthy and each.name not in node.held_devices)


def _held_devices(node: ClusterNode) -> Iterator[Device]:
    return (each for each in node.devices if each.healthy and each.name in node.held_devices)


def _hall_sets(atoms: Sequence[int], masks: Sequence[int]) -> tuple[list[int], bool]:
    """The sets of atoms that are closed and connected, and whether these are all. `masks`: by kind
    of device, the atoms that select it."""
    reach = {atom: sum(1 << at for at, mask in enumerate(masks) if mask & atom) for atom in atoms}
    found: list[int] = []
    is_complete = True
    for part in _connected(atoms, reach):
        unions = {reach[atom] for atom in part}
        for atom in part:
            unions |= {each | reach[atom] for each in unions}
            if len(unions) > MOST_SETS:
                is_complete = False
                break
        if len(unions) > MOST_SETS:
            found += [*part, sum(part)]
            continue
        for union in sorted(unions):
            closed = [atom for atom in part if not reach[atom] & ~union]
            if len(_connected(closed, reach)) == 1:
                found.append(sum(closed))
    return list(dict.fromkeys(found)), is_complete


def _connected(atoms: Sequence[int], reach: Mapping[int, int]) -> list[list[int]]:
    """In parts that have no device in common."""
    parts: list[tuple[list[int], int]] = []
    for atom in atoms:
        members, reached = [atom], reach[atom]
        apart = []
        for part in parts:
            if part[1] & reached:
                members = [*part[0], *members]
                reached |= part[1]
            else:
                apart.append(part)
        parts = [*apart, (members, reached)]
    return [members for members, _ in parts]
