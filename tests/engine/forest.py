"""A small forest in plain Python, for tests: what the engine's snapshot means, without its columns.

Hand-written forests are grown from `node`s, generated ones are made of `Provider`s; both are
turned into the rows that the engine takes in. Names are at most sixteen letters long, so that a
provider's UUID can spell its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from uuid import UUID

from dovetail.core.tables import InventoryRow, Names, Tables

SHARING = "MISC_SHARES_VIA_AGGREGATE"
CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "VF", "FPGA")
TRAITS = (
    *(SHARING, "HW_NUMA_ROOT", "HW_NIC_ROOT", "NET1", "NET2", "LARGE"),
    *("COMPUTE_VOLUME_MULTI_ATTACH", "CUSTOM_WINDOWS_LICENSED"),
)
"""Every name that a forest may hold; its place here is its id, so that ids never depend on the
order in which tests run."""


@dataclass(frozen=True, slots=True)
class Inventory:
    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = 2**31 - 1
    step_size: int = 1
    ratio: float = 1.0
    used: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Provider:
    """Compared by identity: two providers are never the same one because they look alike."""

    id: int
    name: str
    parent: int | None = None
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Node:
    """A provider of a hand-written forest, with what hangs below it."""

    name: str
    children: tuple[Node, ...]
    traits: frozenset[str]
    aggregates: frozenset[str]
    inventories: Mapping[str, Inventory]
    attributes: Mapping[str, str]


def node(
    name: str,
    *children: Node,
    traits: Iterable[str] = (),
    aggregates: Iterable[str] = (),
    attributes: Mapping[str, str] | None = None,
    **inventories: Inventory | int,
) -> Node:
    """A bare number is the total of an inventory that is free and unlimited otherwise."""
    full = {
        name: Inventory(value) if isinstance(value, int) else value
        for name, value in inventories.items()
    }
    return Node(name, children, frozenset(traits), frozenset(aggregates), full, attributes or {})


class Forest:
    """Providers by id, and the walks over them that conditions are made of."""

    def __init__(self, providers: Iterable[Provider]) -> None:
        self.providers = {provider.id: provider for provider in providers}
        self._roots = {provider.id: self.path(provider)[-1] for provider in self}

    def __iter__(self) -> Iterator[Provider]:
        return iter(self.providers.values())

    def __repr__(self) -> str:
        return "Forest([\n  " + ",\n  ".join(repr(provider) for provider in self) + "\n])"

    def roots(self) -> list[Provider]:
        return [provider for provider in self if provider.parent is None]

    def path(self, provider: Provider) -> list[Provider]:
        """The provider, its parent and so on up to its root."""
        path = [provider]
        while (parent := path[-1].parent) is not None:
            path.append(self.providers[parent])
        return path

    def root(self, provider: Provider) -> Provider:
        return self._roots[provider.id]

    def tree(self, provider: Provider) -> list[Provider]:
        """All providers of the tree that this one is of."""
        return [other for other in self if self.root(other) is self.root(provider)]

    def named(self, name: str) -> Provider | None:
        return next((provider for provider in self if provider.name == name), None)


def grow(*trees: Node) -> Forest:
    """The forest of these trees, numbered from one in the order in which they are written."""
    ids = count(1)

    def planted(tree: Node, parent: int | None) -> Iterator[Provider]:
        own = next(ids)
        held = (tree.inventories, tree.traits, tree.aggregates, tree.attributes)
        yield Provider(own, tree.name, parent, *held)
        for child in tree.children:
            yield from planted(child, own)

    return Forest(provider for tree in trees for provider in planted(tree, None))


def uuid_of(name: str) -> str:
    return str(UUID(bytes=name.encode().ljust(16)))


def name_of(uuid: str) -> str:
    return UUID(uuid).bytes.decode().rstrip()


def rows(forest: Forest, roots: Iterable[Provider]) -> tuple[Tables, Names]:
    """The trees of these roots as the ledger hands them over, with all the names it knows."""
    wanted = {root.id for root in roots}
    chosen = sorted(
        (provider for provider in forest if forest.root(provider).id in wanted),
        key=lambda provider: (forest.root(provider).id, provider.id),
    )
    tables = Tables(
        providers=[(p.id, uuid_of(p.name), p.parent, forest.root(p).id) for p in chosen],
        inventories=[row for p in chosen for row in _inventory_rows(p)],
        traits=[(p.id, TRAITS.index(trait)) for p in chosen for trait in sorted(p.traits)],
        aggregates=[(p.id, aggregate) for p in chosen for aggregate in sorted(p.aggregates)],
        attributes=[(p.id, *each) for p in chosen for each in sorted(p.attributes.items())],
    )
    names = Names(classes=dict(enumerate(CLASSES)), traits=dict(enumerate(TRAITS)))
    return tables, names


def _inventory_rows(provider: Provider) -> list[InventoryRow]:
    return [
        (
            *(provider.id, CLASSES.index(name), held.total, held.reserved),
            *(held.min_unit, held.max_unit, held.step_size, held.ratio, held.used),
        )
        for name, held in sorted(provider.inventories.items())
    ]
