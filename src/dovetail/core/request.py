"""Requests: groups of resources and the relations between them.

Doors (REST, CRDs, intents) write these values down; the engine answers them. Amounts are whole
numbers in the resource class's own unit, names are those of the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dovetail.core.selectors.selector import Selector


class NamedSelector(msgspec.Struct, frozen=True):
    """What a device class selects, by the name that asked for it."""

    name: str
    selector: Selector


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """One request group.

    The group with the empty suffix may be served by several providers of one tree and by the
    providers that share with that tree; every other group is served by exactly one provider. A
    suffixed group without resources is served by a provider that merely has to be there.
    """

    suffix: str = ""
    resources: Mapping[str, int] = {}
    required: tuple[frozenset[str], ...] = ()
    """Traits: at least one of each set."""
    forbidden: frozenset[str] = frozenset()
    """Traits that no serving provider may have."""
    member_of: tuple[frozenset[str], ...] = ()
    """Aggregates: at least one of each set."""
    not_member_of: frozenset[str] = frozenset()
    in_tree: str | None = None
    """UUID of any provider of the tree that has to serve."""
    selectors: tuple[Selector, ...] = ()
    """Conditions on attributes: every serving provider meets all of them."""
    classes: tuple[NamedSelector, ...] = ()
    """Likewise, by name."""


class Affinity(msgspec.Struct, frozen=True):
    """Groups that share a subtree, and groups that stay out of it.

    One provider serving a group of `together` has to be the ancestor of all the others serving
    `together`; no provider serving a group of `apart` may be that ancestor or below it.
    """

    together: frozenset[str]
    apart: frozenset[str] = frozenset()


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A whole question to the engine."""

    groups: tuple[Group, ...]
    limit: int | None = None
    isolated: frozenset[str] = frozenset()
    """Suffixes of groups whose provider may serve no other suffixed group."""
    affinities: tuple[Affinity, ...] = ()
    root_required: tuple[frozenset[str], ...] = ()
    root_forbidden: frozenset[str] = frozenset()
    root_member_of: tuple[frozenset[str], ...] = ()
    root_not_member_of: frozenset[str] = frozenset()
    one_provider_per_tree: bool = False
    """How clients that know no nesting have to be answered."""
    rank: tuple[tuple[str, int], ...] = ()
    """Policies and their weights that decide what comes first; without any the trees' order."""
