"""Constraints of a request: taken apart one by one, and put together again, for explanations.

`engine/explain` counts what is left after each constraint and tries what would happen without one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator

import msgspec
from msgspec.structs import replace

from dovetail.core.explanation import Reason
from dovetail.core.request import Affinity, Group, NamedSelector, Request
from dovetail.core.selectors import condition_text
from dovetail.core.selectors.selector import Selector

RELATIONS = frozenset(
    (Reason.SHARED_CAPACITY, Reason.TOGETHER, Reason.ISOLATION, Reason.SAME_SUBTREE)
)
"""What the providers chosen demand of each other; the rest each provider meets by itself."""


class Constraint(msgspec.Struct, frozen=True):
    """One thing a request demands; `text` is how a query says it."""

    reason: Reason
    text: str
    group: str | None = None
    """Suffix of the group it is about; None where it is about the root or several groups."""
    name: str = ""
    """The resource class of an amount, or the device class."""
    amount: int = 0
    names: frozenset[str] = frozenset()
    """Traits or aggregates, at least one of which is wanted; the one that is not; suffixes."""
    affinity: Affinity | None = None
    selector: Selector = ()
    """A condition on attributes, or what a device class selects."""


def constraints(request: Request) -> tuple[Constraint, ...]:
    """Everything the request demands: of roots, of each group's providers, then between them.

    What is demanded twice is one constraint.
    """
    demanded = (
        *of_roots(request),
        *(one for group in request.groups for one in of_group(group)),
        *between_groups(request),
    )
    return tuple(dict.fromkeys(demanded))


def of_roots(request: Request) -> Iterator[Constraint]:
    yield from any_of(Reason.ROOT_TRAIT, request.root_required)
    yield from none_of(Reason.ROOT_FORBIDDEN_TRAIT, request.root_forbidden)
    yield from any_of(Reason.ROOT_AGGREGATE, request.root_member_of)
    yield from none_of(Reason.ROOT_FORBIDDEN_AGGREGATE, request.root_not_member_of)


def of_group(group: Group) -> Iterator[Constraint]:
    for name, amount in group.resources.items():
        yield Constraint(Reason.AMOUNT, f"{name}:{amount}", group.suffix, name, amount)
    if group.suffix:
        yield from any_of(Reason.TRAIT, group.required, group.suffix)
    yield from none_of(Reason.FORBIDDEN_TRAIT, group.forbidden, group.suffix)
    yield from any_of(Reason.AGGREGATE, group.member_of, group.suffix)
    yield from none_of(Reason.FORBIDDEN_AGGREGATE, group.not_member_of, group.suffix)
    for selector in group.selectors:
        text = selector_text(selector)
        yield Constraint(Reason.ATTRIBUTE, text, group.suffix, selector=selector)
    for each in group.classes:
        yield Constraint(Reason.CLASS, each.name, group.suffix, each.name, selector=each.selector)
    if group.in_tree is not None:
        names = frozenset([group.in_tree])
        yield Constraint(Reason.IN_TREE, group.in_tree, group.suffix, names=names)


def selector_text(selector: Selector) -> str:
    return " or ".join(map(condition_text.write, selector))


def between_groups(request: Request) -> Iterator[Constraint]:
    asked = Counter(name for group in request.groups for name in group.resources)
    contended = [name for name, times in asked.items() if times > 1]
    if contended:
        yield Constraint(Reason.SHARED_CAPACITY, ",".join(contended), names=frozenset(contended))
    for group in request.groups:
        if not group.suffix:
            yield from any_of(Reason.TOGETHER, group.required, "")
    if request.isolated:
        yield isolation(request.isolated)
    yield from (same_subtree(affinity) for affinity in request.affinities)


def isolation(suffixes: frozenset[str]) -> Constraint:
    return Constraint(Reason.ISOLATION, ",".join(sorted(suffixes)), names=suffixes)


def same_subtree(affinity: Affinity) -> Constraint:
    members = (*sorted(affinity.together), *(f"!{one}" for one in sorted(affinity.apart)))
    return Constraint(Reason.SAME_SUBTREE, ",".join(members), affinity=affinity)


def any_of(
    reason: Reason, sets: Iterable[frozenset[str]], group: str | None = None
) -> Iterator[Constraint]:
    for names in sets:
        text = ",".join(sorted(names))
        yield Constraint(reason, f"in:{text}" if len(names) > 1 else text, group, names=names)


def none_of(reason: Reason, names: Iterable[str], group: str | None = None) -> Iterator[Constraint]:
    for name in sorted(names):
        yield Constraint(reason, f"!{name}", group, names=frozenset([name]))


def with_amount(one: Constraint, amount: int) -> Constraint:
    """The constraint on an amount, with another amount."""
    return replace(one, text=f"{one.name}:{amount}", amount=amount)


# -- putting together ------------------------------------------------------------------------------


def only(request: Request, kept: Collection[Constraint]) -> Request:
    """The request with nothing but these of its constraints; groups that lose all are gone."""
    groups = [
        only_group(group, [one for one in kept if one.group == group.suffix])
        for group in request.groups
    ]
    return replace(
        request,
        groups=tuple(group for group in groups if group is not None),
        isolated=names_of(kept, Reason.ISOLATION),
        affinities=tuple(one.affinity for one in kept if one.affinity is not None),
        root_required=sets_of(kept, Reason.ROOT_TRAIT),
        root_forbidden=names_of(kept, Reason.ROOT_FORBIDDEN_TRAIT),
        root_member_of=sets_of(kept, Reason.ROOT_AGGREGATE),
        root_not_member_of=names_of(kept, Reason.ROOT_FORBIDDEN_AGGREGATE),
    )


def only_group(group: Group, kept: Collection[Constraint]) -> Group | None:
    if not kept:
        return None
    return replace(
        group,
        resources={one.name: one.amount for one in kept if one.reason is Reason.AMOUNT},
        required=sets_of(kept, Reason.TRAIT) or sets_of(kept, Reason.TOGETHER),
        forbidden=names_of(kept, Reason.FORBIDDEN_TRAIT),
        member_of=sets_of(kept, Reason.AGGREGATE),
        not_member_of=names_of(kept, Reason.FORBIDDEN_AGGREGATE),
        in_tree=group.in_tree if has(kept, Reason.IN_TREE) else None,
        selectors=tuple(one.selector for one in kept if one.reason is Reason.ATTRIBUTE),
        classes=tuple(
            NamedSelector(one.name, one.selector) for one in kept if one.reason is Reason.CLASS
        ),
    )


def has(kept: Collection[Constraint], reason: Reason) -> bool:
    return any(one.reason is reason for one in kept)


def sets_of(kept: Collection[Constraint], reason: Reason) -> tuple[frozenset[str], ...]:
    return tuple(one.names for one in kept if one.reason is reason)


def names_of(kept: Collection[Constraint], reason: Reason) -> frozenset[str]:
    return frozenset(name for one in kept if one.reason is reason for name in one.names)


def with_changes(request: Request, changes: dict[Constraint, Constraint | None]) -> Request | None:
    """The request with some constraints replaced or dropped; None if nothing is asked for then.

    A group that asks for nothing any more and is tied to no other goes with what it demanded.
    """
    kept = []
    for one in constraints(request):
        other = changes.get(one, one)
        if other is not None:
            kept.append(other)
    return tidy(only(request, kept))


def tidy(request: Request) -> Request | None:
    while True:
        tied = {name for one in request.affinities for name in one.together | one.apart}
        groups = tuple(
            group
            for group in request.groups
            if group.resources or (group.suffix and group.suffix in tied)
        )
        suffixes = frozenset(group.suffix for group in groups if group.suffix)
        found = replace(
            request,
            groups=groups,
            isolated=request.isolated & suffixes,
            affinities=tuple(tidy_affinities(request.affinities, suffixes)),
        )
        if found == request:
            return found if any(group.resources for group in groups) else None
        request = found


def tidy_affinities(affinities: Iterable[Affinity], suffixes: frozenset[str]) -> Iterator[Affinity]:
    for affinity in affinities:
        left = Affinity(affinity.together & suffixes, affinity.apart & suffixes)
        if left.together:
            yield left
