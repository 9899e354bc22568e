"""The hardware during a replay: places tasks through the engine and takes them away again."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dovetail.core.fleet import FleetPlan
from dovetail.core.request import Request
from dovetail.core.tables import Names, Tables
from dovetail.engine.rank import Ranking, best
from dovetail.engine.snapshot import Snapshot

Hold = list[tuple[int, int, int]]
"""(provider id, class id, amount) of a task that was placed"""


class Floor:
    """A fleet of which nothing is in use yet, its trees in the order given."""

    def __init__(self, plan: FleetPlan, order: list[int], ranking: Ranking) -> None:
        """`order`: the trees, by their number in the plan; equally good ones are taken so."""
        self.snapshot = Snapshot()
        self.snapshot.load(*tables_of(plan, order))
        self._ranking = ranking
        self._used: dict[tuple[int, int], int] = {}

    def place(self, request: Request) -> Hold | None:
        """Take the best place there is."""
        found = best(self.snapshot, request, self._ranking, limit=1)
        if not len(found.rows):
            return None
        providers = self.snapshot.provider_id.values[found.rows[0]].tolist()
        hold = [
            (provider, self.snapshot.class_ids[name], amount)
            for provider, amounts in zip(providers, slots(request), strict=True)
            for name, amount in amounts
        ]
        self._change(hold, 1)
        return hold

    def release(self, hold: Hold) -> None:
        self._change(hold, -1)

    def _change(self, hold: Hold, sign: int) -> None:
        touched = {}
        for provider, class_id, amount in hold:
            used = self._used.get((provider, class_id), 0) + sign * amount
            self._used[provider, class_id] = touched[provider, class_id] = used
        self.snapshot.update_usage((*key, used) for key, used in touched.items())


def slots(request: Request) -> Iterator[tuple[tuple[str, int], ...]]:
    """What each provider of a candidate gives: a group with a suffix is served by one provider."""
    for group in request.groups:
        resources = tuple(group.resources.items())
        if group.suffix:
            yield resources
        else:
            yield from ((each,) for each in resources)


def tables_of(plan: FleetPlan, order: list[int]) -> tuple[Tables, Names]:
    """The fleet as a ledger would hand it over if its trees had been made in that order."""
    ids = provider_ids(plan, order)
    classes = numbered(name for each in plan.providers for name in each.inventories)
    traits = numbered(name for each in plan.providers for name in each.traits)
    tables = Tables(providers=[], inventories=[], traits=[], aggregates=[])
    for position in np.argsort(ids).tolist():
        each, id_ = plan.providers[position], ids[position]
        parent = None if each.parent is None else ids[each.parent]
        tables.providers.append((id_, each.uuid, parent, ids[each.root]))
        tables.traits += [(id_, traits[name]) for name in each.traits]
        tables.aggregates += [(id_, name) for name in each.aggregates]
        for name, inventory in each.inventories.items():
            total, reserved = inventory.total, inventory.reserved
            units = inventory.min_unit, inventory.max_unit, inventory.step_size
            ratio = inventory.allocation_ratio
            tables.inventories.append((id_, classes[name], total, reserved, *units, ratio, 0))
    return tables, Names(
        classes={number: name for name, number in classes.items()},
        traits={number: name for name, number in traits.items()},
    )


def provider_ids(plan: FleetPlan, order: list[int]) -> list[int]:
    """By position in the plan, counted tree by tree in the order of the trees."""
    trees: dict[int, list[int]] = {}
    for position, provider in enumerate(plan.providers):
        trees.setdefault(provider.root, []).append(position)
    roots = list(trees)
    ids = [0] * len(plan.providers)
    placed = (position for tree in order for position in trees[roots[tree]])
    for number, position in enumerate(placed, 1):
        ids[position] = number
    return ids


def numbered(names: Iterator[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names), 1)}
