"""Conflicts: why a group has no pick, down to the fewest apps and controllers that forbid it.

`pick` calls it when there is none. Each app tells which clusters each controller leaves it. The
smallest conflict is found by deletion: apps are left out one by one, the last first, as long as
there is still no pick for the others; then controllers likewise. What remains is minimal: without
any of these apps, or what any of these controllers says, there would be a pick. That takes a search
for each app and controller; one that is not decided in time keeps its app or controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from dovetail.intents.candidates.admissible import AdmissibleSets
from dovetail.intents.candidates.app_demand import union
from dovetail.intents.candidates.app_relations import relations_of
from dovetail.intents.candidates.app_sets import place_of
from dovetail.intents.candidates.cluster_set import EVERYWHERE, ClusterSet
from dovetail.intents.candidates.combining import (
    CONTRADICTION,
    CombinedCandidates,
    GroupRefusal,
    combine,
)
from dovetail.intents.candidates.partitions import AppCompatibility, ControllerAnswer
from dovetail.intents.names import ClusterName

MOST_NAMED = 4
"""Apps or clusters that words name; of more the number is told."""

IsImpossible = Callable[[CombinedCandidates], bool]
"""Whether it is proven that there is no pick."""


class ControllerLimit(msgspec.Struct, frozen=True, kw_only=True):
    """Which clusters one controller leaves an app."""

    controller: str
    clusters: ClusterSet
    size: int


class AppNarrowing(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of an app's clusters, controller by controller."""

    app: str
    limits: tuple[ControllerLimit, ...]
    """Of those that do not leave it all."""
    left: ClusterSet
    size: int
    words: str


class ExcludedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that would do, but for one controller."""

    cluster: ClusterName
    app: str
    controller: str
    words: str
    """Why, as far as the controller told."""


class SmallestConflict(msgspec.Struct, frozen=True, kw_only=True):
    """Apps and controllers, none of which can be left out."""

    apps: tuple[str, ...]
    controllers: tuple[str, ...]
    excluded: tuple[ExcludedCluster, ...] = ()
    words: str


class NoPick(msgspec.Struct, frozen=True, kw_only=True):
    """That no choice of clusters serves all apps, and why."""

    apps: Mapping[str, AppNarrowing]
    conflict: SmallestConflict | None
    """None: not proven, or not known."""
    is_proven: bool
    """False: none was found in time, or controllers did not tell all candidates."""
    words: str


def explained(
    combined: CombinedCandidates, is_impossible: IsImpossible, *, is_decided: bool, is_proven: bool
) -> NoPick:
    """`is_decided`: whether the search has come to its end."""
    apps = {app: narrowing_of(combined, app) for app in combined.apps}
    if not is_decided:
        words = "no pick was found in time; there may be one"
        return NoPick(apps=apps, conflict=None, is_proven=False, words=words)
    conflict = smallest_conflict(combined, is_impossible)
    return NoPick(apps=apps, conflict=conflict, is_proven=is_proven, words=conflict.words)


def narrowing_of(combined: CombinedCandidates, app: str) -> AppNarrowing:
    clusters = combined.clusters
    limits = []
    left = EVERYWHERE
    for controller in combined.partitions:
        domain = combined.domain(app, controller)
        size = domain.size(clusters)
        if size < len(clusters):
            limit = ControllerLimit(
                controller=controller, clusters=domain.compact(clusters), size=size
            )
            limits.append(limit)
            left &= domain
    size = left.size(clusters)
    told = [f"{each.controller} leaves {_clusters(each.clusters, clusters)}" for each in limits]
    if len(limits) != 1:
        told.append(f"all together leave {_clusters(left, clusters)}")
    return AppNarrowing(
        app=app,
        limits=tuple(limits),
        left=left.compact(clusters),
        size=size,
        words=f"{app}: {'; '.join(told)}",
    )


def smallest_conflict(
    combined: CombinedCandidates, is_impossible: IsImpossible
) -> SmallestConflict:
    refusal = next(iter(combined.refusals), None)
    if refusal is not None and refusal.token == CONTRADICTION:
        return _contradiction(combined, refusal)
    names = tuple(combined.clusters)

    def is_still_impossible(answers: Sequence[ControllerAnswer], apps: Sequence[str]) -> bool:
        part = combine(limited_to(answers, apps), apps, names)
        return bool(part.refusals) or is_impossible(part)

    apps = list(combined.apps if refusal is None else refusal.apps)
    if refusal is None:
        for app in reversed(combined.apps):
            others = [each for each in apps if each != app]
            if others and is_still_impossible(combined.answers, others):
                apps = others
    answers = list(combined.answers)
    for answer in combined.answers:
        rest = [each for each in answers if each is not answer]
        if is_still_impossible(rest, apps):
            answers = rest
    minimal = combine(limited_to(answers, apps), apps, names)
    if refusal is not None:
        return _conflict(minimal, f"{_apps(apps)}: {refusal.words}")
    return _joint_conflict(minimal)


def _contradiction(combined: CombinedCandidates, refusal: GroupRefusal) -> SmallestConflict:
    """Of app-to-app rules alone."""
    rules = {
        each.controller: each.candidates
        for each in combined.answers
        if isinstance(each.candidates, AppCompatibility)
    }
    for controller in list(rules):
        rest = {name: rule for name, rule in rules.items() if name != controller}
        if next(relations_of(rest.values(), combined.apps).contradictions(), None) is not None:
            rules = rest
    return SmallestConflict(
        apps=refusal.apps,
        controllers=tuple(rules),
        words=f"{_apps(refusal.apps)}: {refusal.words}",
    )


def limited_to(answers: Iterable[ControllerAnswer], apps: Sequence[str]) -> list[ControllerAnswer]:
    """Without rules about other apps, which would be missing."""
    found = []
    for answer in answers:
        candidates = answer.candidates
        if isinstance(candidates, AppCompatibility):
            rules = AppCompatibility(
                denied=candidates.denied,
                required=frozenset(pair for pair in candidates.required if pair[1] in apps),
            )
            found.append(msgspec.structs.replace(answer, candidates=rules))
        else:
            found.append(answer)
    return found


def _conflict(
    minimal: CombinedCandidates, words: str, excluded: Sequence[ExcludedCluster] = ()
) -> SmallestConflict:
    return SmallestConflict(
        apps=minimal.apps,
        controllers=tuple(answer.controller for answer in minimal.answers),
        excluded=tuple(excluded),
        words=words,
    )


def _joint_conflict(minimal: CombinedCandidates) -> SmallestConflict:
    """Of apps that all have clusters, but not at once."""
    every = (1 << len(minimal.apps)) - 1
    if len(minimal.apps) > 1 and any(mask == every for mask in minimal.relations.required):
        return _apart_conflict(minimal)
    left = {app: narrowing_of(minimal, app).left for app in minimal.apps}
    if len(left) <= MOST_NAMED:
        told = " and ".join(
            f"{app} can go to {_clusters(some, minimal.clusters)}" for app, some in left.items()
        )
    else:
        between = _clusters(union(left.values()), minimal.clusters)
        told = f"{_apps(minimal.apps)} can go to {between} between them"
    reasons = _contention_words(minimal)
    words = f"{told}, but not all at once"
    return _conflict(minimal, f"{words}: {'; '.join(reasons)}" if reasons else words)


def _apart_conflict(minimal: CombinedCandidates) -> SmallestConflict:
    """Of apps that must share clusters: which take them all, and who excludes these."""
    who = f"{_apps(minimal.apps)} must share a cluster"
    both = "both" if len(minimal.apps) == 2 else "all of them"
    best: list[ExcludedCluster] = []
    for controller in minimal.partitions:
        found = _excluded_by(minimal, controller)
        if found and (not best or len(found) < len(best)):
            best = found
    if not best:
        return _conflict(minimal, f"{who}, and none takes {both}")
    clusters = list(dict.fromkeys(each.cluster for each in best))
    named = _clusters(ClusterSet.allow(clusters), minimal.clusters)
    verb, them = ("takes", "it") if len(clusters) == 1 else ("take", "them")
    whom = _apps(tuple(dict.fromkeys(each.app for each in best)))
    words = (
        f"{who}; only {named} {verb} {both}, and {best[0].controller} excludes {them} for {whom}"
    )
    why = list(dict.fromkeys(each.words for each in best if each.words))
    return _conflict(minimal, f"{words} ({why[0]})" if len(why) == 1 else words, best)


def _excluded_by(minimal: CombinedCandidates, controller: str) -> list[ExcludedCluster]:
    """Clusters that would take all apps, but for this controller."""
    rest = [answer for answer in minimal.answers if answer.controller != controller]
    without = combine(rest, minimal.apps, tuple(minimal.clusters))
    every = (1 << len(minimal.apps)) - 1
    found = []
    for demands in without.alternatives():
        sets = AdmissibleSets(without, demands)
        names = tuple(minimal.clusters)
        fits = [place_of(family, every) is not None for family in sets.families]
        for cluster, kind in enumerate(sets.kinds.tolist()):
            if fits[kind]:
                found += _exclusions(minimal, names[cluster], controller)
        break
    return found


def _exclusions(
    minimal: CombinedCandidates, cluster: ClusterName, controller: str
) -> list[ExcludedCluster]:
    return [
        ExcludedCluster(
            cluster=cluster,
            app=app,
            controller=controller,
            words=each.refusal.words if each.refusal else "",
        )
        for app in minimal.apps
        for each in minimal.exclusions(app, cluster)
        if each.controller == controller
    ]


def _contention_words(minimal: CombinedCandidates) -> list[str]:
    """What apps are in each other's way for: a few of them."""
    apps = minimal.apps
    denied = [
        f"{apps[one]} and {apps[two]} must not share a cluster"
        for one, mask in enumerate(minimal.relations.denied)
        for two in range(one + 1, len(apps))
        if mask >> two & 1
    ]
    left = [narrowing_of(minimal, app).left for app in apps]
    contended = []
    for name in sorted(minimal.families):
        here = [app for app, of in zip(apps, left, strict=True) if name in of]
        if len(here) > 1:
            sets = minimal.families[name]
            most = max(mask.bit_count() for mask in sets)
            why = f" ({minimal.contention[name]})" if name in minimal.contention else ""
            contended.append(f"{name} takes {min(most, len(here))} of {_apps(here)} at once{why}")
    found = [*denied[:MOST_NAMED], *contended[:MOST_NAMED]]
    more = len(denied) + len(contended) - len(found)
    return [*found, f"and {more} more such"] if more else found


def _clusters(some: ClusterSet, clusters: Mapping[ClusterName, int]) -> str:
    names = list(some.within(clusters))
    if not names:
        return "none"
    if len(names) == len(clusters):
        return "every cluster"
    if len(names) > MOST_NAMED:
        missing = [name for name in clusters if name not in some]
        if len(missing) <= MOST_NAMED:
            return f"all but {_apps(missing)}"
        return f"{len(names)} clusters"
    return _apps(names)


def _apps(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    if len(names) > MOST_NAMED:
        return f"{', '.join(names[: MOST_NAMED - 1])} and {len(names) - MOST_NAMED + 1} more"
    return f"{', '.join(names[:-1])} and {names[-1]}"
