"""A request for allocation candidates as a value: groups, relations between them, and a version.

The oracle reads the value; the servers get the query string it renders to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.differential.wire import Call, Params


@dataclass(frozen=True, slots=True)
class Group:
    """What one suffix asks for; the empty suffix is the group that may spread over a tree."""

    suffix: str
    resources: dict[str, int]
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
    member_of: tuple[frozenset[str], ...] = ()
    forbidden_aggregates: frozenset[str] = frozenset()
    in_tree: str | None = None

    def params(self) -> Iterator[tuple[str, str]]:
        if self.resources:
            amounts = (f"{name}:{amount}" for name, amount in self.resources.items())
            yield f"resources{self.suffix}", ",".join(amounts)
        for value in self._traits():
            yield f"required{self.suffix}", value
        for value in self._memberships():
            yield f"member_of{self.suffix}", value
        if self.in_tree:
            yield f"in_tree{self.suffix}", self.in_tree

    def _traits(self) -> Iterator[str]:
        single = [min(any_of) for any_of in self.required if len(any_of) == 1]
        single += ["!" + name for name in sorted(self.forbidden)]
        if single:
            yield ",".join(single)
        for any_of in self.required:
            if len(any_of) > 1:
                yield "in:" + ",".join(sorted(any_of))

    def _memberships(self) -> Iterator[str]:
        for any_of in self.member_of:
            yield min(any_of) if len(any_of) == 1 else "in:" + ",".join(sorted(any_of))
        if len(self.forbidden_aggregates) == 1:
            yield "!" + min(self.forbidden_aggregates)
        elif self.forbidden_aggregates:
            yield "!in:" + ",".join(sorted(self.forbidden_aggregates))


@dataclass(frozen=True, slots=True)
class Query:
    """GET /allocation_candidates, well-formed at its version."""

    groups: tuple[Group, ...]
    version: str
    policy: str | None = None
    same_subtrees: tuple[frozenset[str], ...] = ()
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    limit: int | None = None

    @property
    def minor(self) -> int:
        return int(self.version.split(".")[1])

    @property
    def suffixed(self) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if group.suffix)

    def params(self) -> Params:
        found = [pair for group in self.groups for pair in group.params()]
        if self.policy:
            found.append(("group_policy", self.policy))
        found += [("same_subtree", ",".join(sorted(names))) for names in self.same_subtrees]
        root = [*sorted(self.root_required), *("!" + it for it in sorted(self.root_forbidden))]
        if root:
            found.append(("root_required", ",".join(root)))
        if self.limit:
            found.append(("limit", str(self.limit)))
        return tuple(found)

    def call(self) -> Call:
        return Call("GET", "/allocation_candidates", self.params(), version=self.version)

    def unlimited(self) -> Query:
        return replace(self, limit=None)
