"""Generic placement controller: clusters by name or label, as many as asked for, in order.

`service/intents/controllers` calls it beside all others. It reads the generic placement intent and
the logical cloud of a group; what hardware there is, it does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dovetail.intents.candidates.cluster_set import EVERYWHERE, ClusterSet
from dovetail.intents.candidates.partitions import (
    AppClusters,
    ClusterRefusal,
    ControllerAnswer,
    Part,
    PartitionCandidates,
)
from dovetail.intents.fleet import ClusterInventory
from dovetail.intents.group import (
    AppPlacementRule,
    ClusterTerm,
    DeploymentGroup,
    PlacementGroup,
)
from dovetail.intents.names import ClusterName, cluster_name, provider_and_cluster

GENERIC = "generic"

UNKNOWN = ClusterRefusal(token="unknown_cluster", words="no such cluster")  # noqa: S106
OUTSIDE = ClusterRefusal(token="logical_cloud", words="not in the logical cloud")  # noqa: S106

Clusters = Mapping[ClusterName, ClusterInventory]


def generic_answer(group: DeploymentGroup, clusters: Clusters) -> ControllerAnswer:
    """One candidate: contention is for others to find."""
    rules = {rule.app: rule for rule in group.placement}
    within = EVERYWHERE if group.only_clusters is None else ClusterSet.allow(group.only_clusters)
    apps = {
        app.name: app_clusters(rules.get(app.name, AppPlacementRule(app=app.name)), clusters)
        for app in group.apps
    }
    refusals = {
        name: why
        for name in apps
        if (why := dict(unusable_clusters(rules.get(name), clusters, within)))
    }
    return ControllerAnswer(
        controller=GENERIC,
        candidates=PartitionCandidates(
            alternatives=({name: limited(each, within) for name, each in apps.items()},)
        ),
        refusals=refusals,
    )


def app_clusters(rule: AppPlacementRule, clusters: Clusters) -> AppClusters:
    """Where an app may go, before the logical cloud is looked at.

    Groups without a count are one part, so that a cluster that two of them name counts once. Where
    the intent wants more clusters in all than its groups say, the last group gives them.
    """
    parts = [
        Part(each.count, matching(each.terms, clusters))
        for each in rule.groups
        if each.count is not None
    ]
    everyone = [each for each in rule.groups if each.count is None]
    if everyone:
        parts.insert(0, whole_part(everyone, clusters))
    if not parts:
        parts = [Part(1, EVERYWHERE)]
    more = (rule.count or 0) - sum(part.count for part in parts)
    if more > 0:
        parts[-1] = Part(parts[-1].count + more, parts[-1].clusters)
    return AppClusters(
        parts=tuple(parts),
        is_counted=bool(rule.groups) or rule.count is not None,
        preference=tuple(matching(terms, clusters) for terms in rule.preference),
    )


def whole_part(groups: Sequence[PlacementGroup], clusters: Clusters) -> Part:
    """Every cluster that the groups name. A label that no cluster has can't be served: then one
    more is asked for than there are."""
    names: frozenset[ClusterName] = frozenset()
    lacking = 0
    for group in groups:
        found = matching(group.terms, clusters).names
        lacking += not found
        names |= found
    return Part(len(names) + lacking, ClusterSet.allow(names))


def matching(terms: Iterable[ClusterTerm], clusters: Clusters) -> ClusterSet:
    """One that is named is in it, whether it exists or not: so it can be told that it doesn't."""
    found: set[ClusterName] = set()
    for term in terms:
        if term.cluster:
            found.add(cluster_name(term.provider, term.cluster))
        else:
            found.update(name for name in clusters if is_matched(name, term, clusters))
    return ClusterSet.allow(found)


def is_matched(name: ClusterName, term: ClusterTerm, clusters: Clusters) -> bool:
    is_provided = provider_and_cluster(name)[0] == term.provider
    return is_provided and (not term.label or term.label in clusters[name].labels)


def limited(app: AppClusters, within: ClusterSet) -> AppClusters:
    parts = tuple(Part(part.count, part.clusters & within) for part in app.parts)
    return AppClusters(parts=parts, is_counted=app.is_counted, preference=app.preference)


def unusable_clusters(
    rule: AppPlacementRule | None, clusters: Clusters, within: ClusterSet
) -> Iterator[tuple[ClusterName, ClusterRefusal]]:
    """Clusters that the intent names and nobody can use."""
    groups = rule.groups if rule else ()
    for term in (each for group in groups for each in group.terms if each.cluster):
        name = cluster_name(term.provider, term.cluster)
        if name not in clusters:
            yield name, UNKNOWN
        elif name not in within:
            yield name, OUTSIDE
