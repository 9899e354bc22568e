"""Random worlds: hosts with NUMA nodes, NICs and accelerators, shapeless trees, sharing providers.

Everything is drawn from one `random.Random`, so a seed names a world for good. Numbers are small on
purpose: the interesting answers are those where things just fit, or just do not.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.differential.wire import Call
from tests.differential.world import SHARES, Consumer, Inventory, Provider, World

CLASSES = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "SRIOV_NET_VF", "VGPU", "CUSTOM_FPGA")
TRAITS = ("HW_CPU_X86_AVX2", "HW_NUMA_ROOT", "CUSTOM_RED", "CUSTOM_BLUE", "CUSTOM_FAST")
PROJECTS = ("atlas", "boreas")
USERS = ("ursa", "vela")
KINDS = ("INSTANCE", "MIGRATION", None)
RATIOS = (1.0, 1.0, 1.0, 1.5, 2.0, 0.5, 1.1, 0.29, 3.3, 16.0)
MOST_PROVIDERS = 25
DEEPEST = 4

VOCABULARY = (
    *(Call("PUT", f"/resource_classes/{name}") for name in CLASSES if name.startswith("CUSTOM_")),
    *(Call("PUT", f"/traits/{name}") for name in TRAITS if name.startswith("CUSTOM_")),
)
"""Calls that must precede any world."""


def some_uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def some_of(rng: random.Random, items: Sequence[str], most: int) -> frozenset[str]:
    return frozenset(rng.sample(items, rng.randint(0, min(most, len(items)))))


def grow(rng: random.Random) -> World:
    """A world of up to 25 providers, of one of several kinds (flat, nested, sharing, all)."""
    return _Grower(rng).grow()


class _Grower:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.aggregates = [some_uuid(rng) for _ in range(rng.randint(2, 5))]
        self.providers: list[Provider] = []

    def grow(self) -> World:
        rng = self.rng
        nested, sharing, inside = rng.random() < 0.8, rng.random() < 0.6, rng.random() < 0.4
        shapes: list[Callable[[], None]] = [self._flat]
        if nested:
            shapes += [self._numa_host, self._nic_host, self._shapeless, self._shapeless]
        for _ in range(rng.randint(2, 6)):
            rng.choice(shapes)()
        if sharing:
            for _ in range(rng.randint(1, 3)):
                self._sharing()
        del self.providers[MOST_PROVIDERS:]
        if sharing and nested and inside:
            self._share_inside()
        world = World(tuple(self.providers))
        return replace(world, consumers=self._consumers(world))

    def _add(
        self, parent: Provider | None, classes: Sequence[str], traits: Sequence[str] = ()
    ) -> Provider:
        rng = self.rng
        member = rng.random() < (0.2 if parent else 0.7)
        provider = Provider(
            uuid=some_uuid(rng),
            name=f"rp-{rng.getrandbits(40):x}",
            parent=parent.uuid if parent else None,
            inventories={name: self._inventory() for name in classes},
            traits=frozenset(traits) | some_of(rng, TRAITS, 2),
            aggregates=some_of(rng, self.aggregates, 2) if member else frozenset(),
        )
        self.providers.append(provider)
        return provider

    def _inventory(self) -> Inventory:
        rng = self.rng
        total = rng.randint(1, 16)
        plain = rng.random() < 0.6
        if plain:
            return Inventory(total, max_unit=total)
        return Inventory(
            total=total,
            reserved=rng.choice((0, 0, 1, rng.randint(0, total))),
            min_unit=rng.choice((1, 1, 1, 2)),
            max_unit=rng.choice((1, 2, 4, total, total, 1000)),
            step_size=rng.choice((1, 1, 1, 1, 2, 3)),
            allocation_ratio=rng.choice(RATIOS),
        )

    def _flat(self) -> None:
        self._add(None, self.rng.sample(CLASSES[:5], self.rng.randint(1, 4)))

    def _numa_host(self) -> None:
        rng = self.rng
        root = self._add(None, rng.sample(("MEMORY_MB", "DISK_GB", "VCPU"), rng.randint(0, 2)))
        for _ in range(rng.randint(1, 3)):
            node = self._add(root, rng.choice((("VCPU", "MEMORY_MB"), ("VCPU", "PCPU"), ("PCPU",))))
            for _ in range(rng.randint(0, 2)):
                device = self._add(node, (rng.choice(("SRIOV_NET_VF", "VGPU", "CUSTOM_FPGA")),))
                if rng.random() < 0.2:
                    self._add(device, ("CUSTOM_FPGA",))

    def _nic_host(self) -> None:
        rng = self.rng
        root = self._add(None, ("VCPU", "MEMORY_MB"))
        for _ in range(rng.randint(1, 2)):
            nic = self._add(root, ())
            for _ in range(rng.randint(1, 3)):
                self._add(nic, ("SRIOV_NET_VF",))

    def _shapeless(self) -> None:
        rng = self.rng
        tree = [(self._add(None, rng.sample(CLASSES[:4], rng.randint(0, 3))), 1)]
        for _ in range(rng.randint(0, 6)):
            parent, depth = rng.choice(tree)
            if depth < DEEPEST:
                child = self._add(parent, rng.sample(CLASSES, rng.randint(0, 2)))
                tree.append((child, depth + 1))

    def _sharing(self) -> None:
        rng = self.rng
        classes = rng.sample(("DISK_GB", "VGPU", "MEMORY_MB"), rng.choice((1, 1, 2)))
        pool = self._add(None, classes, (SHARES,))
        joined = frozenset(
            rng.sample(self.aggregates, min(len(self.aggregates), rng.choice((1, 2))))
        )
        self.providers[-1] = replace(pool, aggregates=joined)
        if rng.random() < 0.2:
            self._add(pool, ("DISK_GB",))

    def _share_inside(self) -> None:
        """Make a provider below a root share, as a disk array inside a rack would."""
        rng = self.rng
        below = [i for i, it in enumerate(self.providers) if it.parent and it.inventories]
        for i in rng.sample(below, min(len(below), 1)):
            it = self.providers[i]
            joined = it.aggregates | {rng.choice(self.aggregates)}
            self.providers[i] = replace(it, traits=it.traits | {SHARES}, aggregates=joined)

    def _consumers(self, world: World) -> tuple[Consumer, ...]:
        rng = self.rng
        stocked = [it for it in world.providers if it.inventories]
        if not stocked:
            return ()
        return tuple(self._consumer(stocked) for _ in range(rng.randint(0, 6)))

    def _consumer(self, stocked: list[Provider]) -> Consumer:
        rng = self.rng
        wanted: dict[str, dict[str, int]] = {}
        for provider in rng.sample(stocked, min(len(stocked), rng.randint(1, 3))):
            name = rng.choice(sorted(provider.inventories))
            inventory = provider.inventories[name]
            fitting = max(1, min(inventory.capacity, inventory.max_unit))
            wanted[provider.uuid] = {name: rng.choice((1, 2, rng.randint(1, fitting)))}
        return Consumer(
            uuid=some_uuid(rng),
            project=rng.choice(PROJECTS),
            user=rng.choice(USERS),
            kind=rng.choice(KINDS),
            allocations=wanted,
        )
