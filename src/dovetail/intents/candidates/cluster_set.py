"""Cluster sets: an allow or a deny list, with set algebra on both forms without expanding either.

Controllers answer with them, and `combining` intersects their answers. A deny list is every cluster
but those; which clusters there are need not be known for the algebra. Its cost is that of the
lists, whatever the size of the fleet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import msgspec

from dovetail.intents.names import ClusterName


class ClusterSet(msgspec.Struct, frozen=True):
    """The clusters of `names`, or (`denies`) all others."""

    names: frozenset[ClusterName]
    denies: bool = False

    @classmethod
    def allow(cls, names: Iterable[ClusterName]) -> ClusterSet:
        return cls(frozenset(names))

    @classmethod
    def deny(cls, names: Iterable[ClusterName]) -> ClusterSet:
        return cls(frozenset(names), denies=True)

    def __contains__(self, name: ClusterName) -> bool:
        return (name in self.names) is not self.denies

    def __and__(self, other: ClusterSet) -> ClusterSet:
        if self.denies and other.denies:
            return ClusterSet.deny(self.names | other.names)
        if self.denies:
            return ClusterSet.allow(other.names - self.names)
        if other.denies:
            return ClusterSet.allow(self.names - other.names)
        return ClusterSet.allow(self.names & other.names)

    def __or__(self, other: ClusterSet) -> ClusterSet:
        return ~(~self & ~other)

    def __sub__(self, other: ClusterSet) -> ClusterSet:
        return self & ~other

    def __invert__(self) -> ClusterSet:
        return ClusterSet(self.names, not self.denies)

    def within(self, clusters: Iterable[ClusterName]) -> Iterator[ClusterName]:
        """Those of `clusters` that are in it, in their order."""
        return (name for name in clusters if name in self)

    def size(self, clusters: Collection[ClusterName]) -> int:
        """How many of all `clusters` are in it; they should be a set, or the keys of a mapping."""
        known = sum(name in clusters for name in self.names)
        return len(clusters) - known if self.denies else known

    def compact(self, clusters: Collection[ClusterName]) -> ClusterSet:
        """The same set of `clusters` in the shorter form; of two as short, the allow list."""
        allowed = frozenset(self.within(clusters))
        if 2 * len(allowed) <= len(clusters):
            return ClusterSet.allow(allowed)
        return ClusterSet.deny(name for name in clusters if name not in allowed)


EVERYWHERE = ClusterSet.deny(())
