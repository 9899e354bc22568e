"""Hypothetical fleets, for what-if questions: edits of a snapshot's copy, nothing is written.

Hosts are drained, consumers gone, trees added, providers have more than they do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import ceil

from dovetail.core.errors import NotFound
from dovetail.core.fleet import FleetPlan
from dovetail.core.inventory import Inventory, capacity
from dovetail.core.tables import Names, Tables
from dovetail.engine import Snapshot
from dovetail.ledger import inventories


def without_hosts(snapshot: Snapshot, uuids: Iterable[str]) -> None:
    """Take away the trees that these providers are in."""
    roots = set()
    for uuid in uuids:
        tree = snapshot.tree_with(uuid)
        if tree is None:
            raise NotFound(f"No provider has the UUID {uuid!r}.")
        roots.add(int(snapshot.tree_root_id.values[tree]))
    snapshot.replace(Tables([], [], [], []), removed_roots=roots)


def without_claims(snapshot: Snapshot, held: Iterable[tuple[int, int, int]]) -> None:
    """Give back amounts: (provider id, class id, amount)."""
    returned: Counter[tuple[int, int]] = Counter()
    for provider_id, class_id, amount in held:
        returned[provider_id, class_id] += amount
    usages = []
    for (provider_id, class_id), amount in returned.items():
        row = int(snapshot.row_of.values[provider_id])
        inventories = snapshot.inventories.get(class_id)
        at = None if row < 0 or inventories is None else inventories.entry(row)
        if inventories is not None and at is not None:
            used = int(inventories.capacity.values[at] - inventories.free.values[at])
            # It may have been given back for real since somebody looked.
            usages.append((provider_id, class_id, max(used - amount, 0)))
    snapshot.update_usage(usages)


def with_more(snapshot: Snapshot, trees: Tables, added: Mapping[tuple[int, str], int]) -> None:
    """Give providers more of a class, or some where they have none, by id and class; `trees` are
    theirs. Capacity grows by so much, or by what a whole unit more makes of it.
    """
    left = {(id_, snapshot.class_ids.get(name, -1)): more for (id_, name), more in added.items()}
    rows = []
    for row in trees.inventories:
        id_, class_id, total, reserved, low, high, step, ratio, used = row
        wanted = capacity(total, reserved, ratio) + left.get((id_, class_id), 0)
        total += ceil(left.pop((id_, class_id), 0) / ratio)
        while capacity(total, reserved, ratio) < wanted:  # Lost in a product of floats.
            total += 1
        rows.append((id_, class_id, total, reserved, low, high, step, ratio, used))
    rows += [(*at, *inventories.values(Inventory(total=more)), 0) for at, more in left.items()]
    trees.inventories = rows
    snapshot.replace(trees)


def with_trees(snapshot: Snapshot, plan: FleetPlan) -> None:
    """Add the trees of a fleet document."""
    names = Names(dict(snapshot.class_names), dict(snapshot.trait_names))
    add_names(names.classes, (name for p in plan.providers for name in p.inventories))
    add_names(names.traits, (name for p in plan.providers for name in p.traits))
    first = int(snapshot.row_of.size) + 1
    class_ids = {name: id_ for id_, name in names.classes.items()}
    trait_ids = {name: id_ for id_, name in names.traits.items()}
    tables = Tables([], [], [], [])
    for id_, provider in enumerate(plan.providers, first):
        parent = None if provider.parent is None else first + provider.parent
        tables.providers.append((id_, provider.uuid, parent, first + provider.root))
        tables.traits += [(id_, trait_ids[name]) for name in provider.traits]
        tables.aggregates += [(id_, aggregate) for aggregate in provider.aggregates]
        tables.attributes += [(id_, *each) for each in provider.attributes.items()]
        tables.inventories += [
            (id_, class_ids[name], *inventories.values(inventory), provider.used.get(name, 0))
            for name, inventory in provider.inventories.items()
        ]
    snapshot.replace(tables, names)


def add_names(known: dict[int, str], names: Iterable[str]) -> None:
    """Give ids to names that nobody has heard of yet."""
    unknown = dict.fromkeys(names)
    for name in known.values():
        unknown.pop(name, None)
    known.update(enumerate(unknown, max(known, default=0) + 1))
