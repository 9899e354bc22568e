"""Explanations by brute force: every count by asking the oracle about every tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

from dovetail.core.constraints import (
    RELATIONS,
    Constraint,
    constraints,
    only,
    with_amount,
    with_changes,
)
from dovetail.core.explanation import Reason
from dovetail.core.request import Request
from tests.engine.forest import Forest, Inventory, Provider
from tests.engine.oracle import fit_together, reaches, root_fits, ways


def fits(forest: Forest, anchor: Provider, request: Request) -> bool:
    """Whether there is a choice of providers for this tree."""
    return root_fits(anchor, request) and any(
        fit_together(forest, servings, request)
        for servings in product(*(ways(forest, anchor, group) for group in request.groups))
    )


def how_many(forest: Forest, request: Request) -> int:
    return sum(fits(forest, anchor, request) for anchor in forest.roots())


def left_after(forest: Forest, request: Request) -> list[int]:
    """The funnel."""
    demanded = constraints(request)
    counts = []
    for count in range(1, len(demanded) + 1):
        partial = only(request, demanded[:count])
        if demanded[count - 1].reason in RELATIONS:
            counts.append(how_many(forest, partial))
        else:
            counts.append(
                sum(
                    root_fits(anchor, partial)
                    and all(ways(forest, anchor, group) for group in partial.groups)
                    for anchor in forest.roots()
                )
            )
    return counts


def smallest_sets(forest: Forest, request: Request, most: int) -> set[frozenset[Constraint]] | None:
    """The smallest sets of constraints without which something fits; None if all are larger."""
    droppable = [one for one in constraints(request) if one.reason is not Reason.SHARED_CAPACITY]
    for size in range(1, most + 1):
        found = {
            frozenset(chosen)
            for chosen in combinations(droppable, size)
            if any(how_many(forest, relaxed) for relaxed in without(request, chosen))
        }
        if found:
            return found
    return None


def without(request: Request, chosen: Sequence[Constraint]) -> Iterator[Request]:
    """The request without these; if it asks for nothing then, with one of the amounts lowered."""
    changes: dict[Constraint, Constraint | None] = dict.fromkeys(chosen)
    if relaxed := with_changes(request, changes):
        yield relaxed
        return
    for one in chosen:
        for amount in range(1, one.amount):
            lowered = with_changes(request, {**changes, one: with_amount(one, amount)})
            assert lowered
            yield lowered


Entry = tuple[str, str]
"""Name of a provider, and a resource class."""


def entries(forest: Forest, anchor: Provider, request: Request) -> list[Entry]:
    """Wherever something could be added to that tree."""
    names = sorted({name for group in request.groups for name in group.resources})
    reached = [provider.name for provider in forest if reaches(forest, anchor, provider)]
    return [(provider, name) for provider in reached for name in names]


def named(forest: Forest, entry: Entry) -> Provider:
    found = forest.named(entry[0])
    assert found
    return found


def with_more(forest: Forest, added: Mapping[Entry, int]) -> Forest:
    """A class that is new there comes whole; capacity is raised, whatever the ratio."""
    providers = []
    for provider in forest:
        held = dict(provider.inventories)
        for (name, class_name), more in added.items():
            if name != provider.name or not more:
                continue
            old = held.get(class_name)
            if old is None:
                held[class_name] = Inventory(more)
            else:
                room = int((old.total - old.reserved) * old.ratio) + more
                held[class_name] = replace(old, total=room, reserved=0, ratio=1.0)
        providers.append(replace(provider, inventories=held))
    return Forest(providers)


def without_usage(forest: Forest) -> Forest:
    return Forest(
        replace(
            provider,
            inventories={
                name: replace(held, used=0) for name, held in provider.inventories.items()
            },
        )
        for provider in forest
    )
