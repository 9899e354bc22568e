"""Smaller worlds and questions that still go wrong, so that a mismatch can be read at a glance."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from tests.differential.query import Group, Query
from tests.differential.wire import Call
from tests.differential.world import Consumer, Inventory, Provider, World

Case = tuple[World, Query | Call]
Value = TypeVar("Value", Query, Group)


def shrink(case: Case, still_wrong: Callable[[Case], bool]) -> Case:
    """Take away one thing after another for as long as the case stays wrong."""
    at, shrunk = 0, False
    while True:
        options = list(_smaller(case))
        if at < len(options):
            if still_wrong(options[at]):
                case, shrunk = options[at], True  # what follows has moved up to the same place
            else:
                at += 1
        elif shrunk:
            at, shrunk = 0, False
        else:
            return case


def _smaller(case: Case) -> Iterator[Case]:
    world, question = case
    yield from ((smaller, question) for smaller in _smaller_forests(world))
    if isinstance(question, Query):
        yield from ((world, smaller) for smaller in _smaller_queries(question))
    else:
        for i in range(len(question.params)):
            params = question.params[:i] + question.params[i + 1 :]
            yield world, replace(question, params=params)
    yield from ((smaller, question) for smaller in _plainer_worlds(world))


def _smaller_forests(world: World) -> Iterator[World]:
    for root in sorted(set(world.roots.values())):
        yield _without(world, {uuid for uuid, top in world.roots.items() if top == root})
    parents = {it.parent for it in world.providers}
    for it in world.providers:
        if it.uuid not in parents:
            yield _without(world, {it.uuid})
    for consumer in world.consumers:
        yield replace(world, consumers=tuple(it for it in world.consumers if it != consumer))


def _without(world: World, gone: set[str]) -> World:
    kept = tuple(it for it in world.providers if it.uuid not in gone)
    consumers = tuple(_holding_less(it, gone) for it in world.consumers)
    return World(kept, tuple(it for it in consumers if it.allocations))


def _holding_less(consumer: Consumer, gone: set[str]) -> Consumer:
    kept = {rp: held for rp, held in consumer.allocations.items() if rp not in gone}
    return replace(consumer, allocations=kept)


def _plainer_worlds(world: World) -> Iterator[World]:
    for i, provider in enumerate(world.providers):
        for plainer in _plainer(provider):
            providers = (*world.providers[:i], plainer, *world.providers[i + 1 :])
            yield replace(world, providers=providers)


def _plainer(provider: Provider) -> Iterator[Provider]:
    for trait in sorted(provider.traits):
        yield replace(provider, traits=provider.traits - {trait})
    for aggregate in sorted(provider.aggregates):
        yield replace(provider, aggregates=provider.aggregates - {aggregate})
    for name, inventory in provider.inventories.items():
        others = {key: value for key, value in provider.inventories.items() if key != name}
        yield replace(provider, inventories=others)
        plain = Inventory(inventory.total)
        if inventory != plain:
            yield replace(provider, inventories={**provider.inventories, name: plain})


def _with(value: Value, field: str, content: object) -> Value:
    changes: dict[str, Any] = {field: content}
    return replace(value, **changes)


def _smaller_queries(query: Query) -> Iterator[Query]:
    for field in ("policy", "limit"):
        if getattr(query, field) is not None and not (
            field == "policy" and len(query.suffixed) > 1
        ):
            yield _with(query, field, None)
    for field in ("root_required", "root_forbidden"):
        if getattr(query, field):
            yield _with(query, field, frozenset())
    yield from _fewer_subtrees(query)
    for i, group in enumerate(query.groups):
        rest = (*query.groups[:i], *query.groups[i + 1 :])
        bound = any(group.suffix in names for names in query.same_subtrees)
        if not bound and any(it.resources for it in rest):
            yield replace(query, groups=rest)
        for smaller in _smaller_groups(group):
            yield replace(query, groups=(*query.groups[:i], smaller, *query.groups[i + 1 :]))


def _fewer_subtrees(query: Query) -> Iterator[Query]:
    bare = {it.suffix for it in query.groups if not it.resources}
    for i, names in enumerate(query.same_subtrees):
        others = query.same_subtrees[:i] + query.same_subtrees[i + 1 :]
        if bare <= frozenset[str]().union(*others):
            yield replace(query, same_subtrees=others)
        for name in names - bare if len(names) > 1 else ():
            yield replace(query, same_subtrees=(*others, names - {name}))


def _smaller_groups(group: Group) -> Iterator[Group]:
    if len(group.resources) > 1:
        for name in group.resources:
            fewer = {key: value for key, value in group.resources.items() if key != name}
            yield replace(group, resources=fewer)
    plainer = [_with(group, field, empty) for field, empty in _EMPTY if getattr(group, field)]
    for field in ("required", "member_of"):
        several = getattr(group, field)
        if len(several) > 1:
            plainer += [
                _with(group, field, several[:i] + several[i + 1 :]) for i in range(len(several))
            ]
    yield from (it for it in plainer if list(it.params()))


_EMPTY = (
    ("required", ()),
    ("forbidden", frozenset[str]()),
    ("member_of", ()),
    ("forbidden_aggregates", frozenset[str]()),
    ("in_tree", None),
)
