"""The engine's answers in the oracle's terms, and snapshots brought up to date step by step."""

from __future__ import annotations

from msgspec.structs import replace

from dovetail.core.request import Request
from dovetail.engine import Snapshot, search
from tests.engine.forest import CLASSES, Forest, Provider, name_of, rows, uuid_of
from tests.engine.oracle import Candidate


def loaded(forest: Forest) -> Snapshot:
    snapshot = Snapshot()
    snapshot.load(*rows(forest, forest.roots()))
    return snapshot


def ask(snapshot: Snapshot, request: Request) -> list[Candidate]:
    return [
        Candidate(
            frozenset(
                (name_of(uuid), resource, amount)
                for uuid, amounts in found.allocations.items()
                for resource, amount in amounts.items()
            ),
            frozenset(
                (suffix, frozenset(name_of(uuid) for uuid in uuids))
                for suffix, uuids in found.mappings.items()
            ),
        )
        for found in search(snapshot, by_uuid(request))
    ]


def by_uuid(request: Request) -> Request:
    """Requests name the provider of `in_tree`; the engine knows it by its UUID."""
    groups = (
        replace(group, in_tree=group.in_tree and uuid_of(group.in_tree)) for group in request.groups
    )
    return replace(request, groups=tuple(groups))


def carry_over(snapshot: Snapshot, before: Forest, after: Forest) -> None:
    """Tell a snapshot of one forest what makes it another: usages alone where that is enough."""
    if unused(before) == unused(after):
        snapshot.update_usage(sorted(usages(after) - usages(before)))
        return
    kept = [root for root in after.roots() if is_as_before(root, before, after)]
    changed = [root for root in after.roots() if root not in kept]
    stayed = {root.id for root in after.roots()}
    gone = [root.id for root in before.roots() if root.id not in stayed]
    snapshot.replace(*rows(after, changed), removed_roots=gone)


def is_as_before(root: Provider, before: Forest, after: Forest) -> bool:
    former = before.providers.get(root.id)
    return (
        former is not None
        and former.parent is None
        and rows(before, [former]) == rows(after, [root])
    )


def usages(forest: Forest) -> set[tuple[int, int, int]]:
    return {
        (provider.id, CLASSES.index(name), held.used)
        for provider in forest
        for name, held in provider.inventories.items()
    }


def unused(forest: Forest) -> object:
    """All rows of the forest, usages left out."""
    tables, _ = rows(forest, forest.roots())
    free = [row[:-1] for row in tables.inventories]
    return tables.providers, free, tables.traits, tables.aggregates, tables.attributes
