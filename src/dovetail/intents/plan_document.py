"""Documents of plans: what was found for a group, as JSON, for people and programs.

The HTTP edge and the command line show them. Everything is in a fixed order; the age of what
clusters told is in every one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from dovetail.core.explanation import document
from dovetail.intents.candidates.conflicts import NoPick
from dovetail.intents.candidates.expanding import candidates_document
from dovetail.intents.candidates.partitions import PartitionCandidates
from dovetail.intents.candidates.picking import Pick
from dovetail.intents.deployment import OutboxObject
from dovetail.intents.fleet import ClusterHealth, FleetSnapshot
from dovetail.intents.generic import GENERIC
from dovetail.intents.hpa.explaining import HardwareVerdict
from dovetail.intents.hpa.placement import AppPlacement, WorkloadPlacement
from dovetail.intents.manifests.diffs import diff_of
from dovetail.intents.manifests.immutability import immutable_changes
from dovetail.intents.names import ClusterName
from dovetail.intents.plan import CURRENT, GroupPlan, PlannedApp

Json = dict[str, Any]
MOST_REASONS = 500
"""Of an answer; how many more there are is told."""
MOST_CLOSELY = 20
"""Clusters of an explanation that are packed again, to see what would help."""

VerdictOf = Callable[[str, ClusterName], HardwareVerdict]


def plan_document(plan: GroupPlan, failures: Sequence[Json] = ()) -> Json:
    found: Json = {
        "group": plan.group.name,
        "feasible": plan.is_feasible,
        "fleet": fleet_document(plan.fleet),
        "controllers": [
            {
                "name": each.controller,
                **({"lastKnown": True} if each.is_last_known else {}),
            }
            for each in plan.combined.answers
            if each.controller != CURRENT
        ],
        "failures": list(failures),
        "candidates": candidates_document(plan.combined),
        "refused": refused_document(plan),
    }
    if isinstance(plan.pick, Pick):
        found["pick"] = pick_document(plan.pick)
        found["placements"] = [placement_document(plan, each) for each in plan.apps]
    else:
        found |= conflict_document(plan.pick)
    return found


def pick_document(pick: Pick) -> Json:
    return {
        "score": pick.score,
        "isProven": pick.is_proven,
        "apps": {
            app: [{"cluster": each.cluster, "score": each.score, "rank": each.rank} for each in of]
            for app, of in pick.clusters.items()
        },
    }


def fleet_document(fleet: FleetSnapshot) -> Json:
    """How many clusters there are, how old what they told is, and which are not as they should."""
    used = [each for each in fleet.clusters.values() if each.state is ClusterHealth.READY]
    oldest = min((each.observed_at for each in used), default=fleet.taken_at)
    return {
        "takenAt": fleet.taken_at,
        "clusters": len(fleet.clusters),
        "oldestSeconds": max(fleet.taken_at - oldest, 0),
        "notReady": [
            {
                "cluster": each.name,
                "state": str(each.state),
                "why": each.why,
                "ageSeconds": max(fleet.taken_at - each.observed_at, 0),
            }
            for each in fleet.clusters.values()
            if each.state is not ClusterHealth.READY
        ],
    }


# -- refusals --------------------------------------------------------------------------------------


def reasons_of(plan: GroupPlan) -> Iterator[Json]:
    """Why clusters are out, by app, cluster and controller; then what apps contend for."""
    for refusal in plan.combined.refusals:
        yield {"apps": list(refusal.apps), "token": refusal.token, "words": refusal.words}
    for app in plan.combined.apps:
        for answer in plan.combined.answers:
            if answer.controller == CURRENT:
                continue
            refused = answer.refusals.get(app, {})
            for cluster in sorted(excluded(plan, app, answer.controller, refused)):
                why = refused.get(cluster)
                yield {
                    "app": app,
                    "cluster": cluster,
                    "controller": answer.controller,
                    "token": why.token if why else "excluded",
                    "words": why.words if why else unexplained(answer.controller),
                }
    yield from contention(plan)


def excluded(plan: GroupPlan, app: str, controller: str, refused: Mapping[str, object]) -> set[str]:
    """Clusters that the controller keeps an app away from, those that do not exist included."""
    found = set(refused)
    if controller in plan.combined.partitions:
        domain = plan.combined.domain(app, controller)
        found |= {each for each in plan.combined.clusters if each not in domain}
    return found


def unexplained(controller: str) -> str:
    """Of a cluster that a controller leaves out without a word."""
    if controller == GENERIC:
        return "its placement intent names other clusters"
    return f"controller {controller} leaves it out"


def contention(plan: GroupPlan) -> Iterator[Json]:
    for answer in plan.combined.answers:
        if isinstance(answer.candidates, PartitionCandidates):
            for each in answer.candidates.contended:
                apps = [app for app in plan.combined.apps if any(app in of for of in each.fitting)]
                yield {
                    "apps": apps,
                    "cluster": each.cluster,
                    "controller": answer.controller,
                    "token": "contended",
                    "words": each.why or f"{'+'.join(apps)}: not all at once",
                }


def refused_document(plan: GroupPlan) -> list[Json]:
    return limited(reasons_of(plan))


def limited(reasons: Iterable[Json]) -> list[Json]:
    """As many as are read; the number of the others."""
    left = iter(reasons)
    found = list(islice(left, MOST_REASONS))
    more = sum(1 for _ in left)
    return [*found, {"more": more}] if more else found


def conflict_document(found: NoPick) -> Json:
    """The fewest apps and controllers that forbid it."""
    conflict = found.conflict
    if conflict is None:
        return {"why": found.words, "isProven": found.is_proven}
    return {
        "why": found.words,
        "isProven": found.is_proven,
        "conflict": {
            "apps": list(conflict.apps),
            "controllers": list(conflict.controllers),
            "excluded": [
                {
                    "cluster": each.cluster,
                    "app": each.app,
                    "controller": each.controller,
                    "words": each.words,
                }
                for each in conflict.excluded
            ],
        },
        "narrowing": {app: each.words for app, each in found.apps.items()},
    }


# -- placements ------------------------------------------------------------------------------------


def placement_document(plan: GroupPlan, planned: PlannedApp) -> Json:
    original = next(each for each in plan.group.apps if each.name == planned.app)
    placement = planned.placement
    cluster = next(each for each in plan.clusters if each.cluster == planned.cluster)
    found: Json = {
        "app": planned.app,
        "cluster": planned.cluster,
        "score": placement.score,
        "options": options_document(placement),
        "workloads": [workload_document(each) for each in placement.workloads],
        "edits": [
            {
                "object": each.where,
                "path": each.path,
                "before": each.before,
                "after": each.after,
                "why": each.why,
            }
            for each in planned.edited.edits
        ],
        "diff": diff_of(original.objects, planned.edited.objects),
        "objects": [
            each if each.get("kind") != "Secret" else {**each, "data": {}, "stringData": {}}
            for each in planned.edited.objects
        ],
    }
    unproved = [each for each in cluster.unproved if each.startswith(f"{planned.app}/")]
    if unproved:
        found["mayStrand"] = unproved
    return found


def options_document(placement: AppPlacement) -> list[Json]:
    return [
        {
            "consumer": each.consumer,
            "requirement": each.requirement,
            "weight": each.weight,
            "granted": each.granted,
        }
        for each in placement.options
    ]


def workload_document(one: WorkloadPlacement) -> Json:
    found: Json = {
        "kind": one.kind,
        "name": one.name,
        "nodes": dict(sorted(one.nodes.items())),
        "amounts": dict(sorted(one.amounts.items())),
        "qosClass": one.exclusivity.qos,
        "exclusiveCpus": dict(one.exclusivity.exclusive),
        "exclusiveCpuObstacles": list(one.exclusivity.obstacles),
    }
    if one.devices:
        found["devices"] = [
            {
                "node": each.node,
                "device": each.device,
                "units": each.units,
                "class": each.class_name,
                "container": each.container,
            }
            for each in one.devices
        ]
    if one.fabrics:
        found["within"] = dict(one.fabrics)
    if one.pin is not None:
        found["pinned"] = {"nodes": list(one.pin.nodes), "why": one.pin.why}
    return found


def replacements(
    there: Iterable[OutboxObject], planned: Iterable[OutboxObject]
) -> dict[tuple[str, str, int], list[Json]]:
    """By place: changes of objects that cannot be brought about without making them anew."""
    old = {(each.cluster, each.app, each.key): each for each in there if each.uid}
    found = {}
    for each in planned:
        before = old.get((each.cluster, each.app, each.key))
        changes = immutable_changes(before.manifest, each.manifest) if before is not None else ()
        if changes:
            found[each.place] = [
                {
                    "cluster": each.cluster,
                    "app": each.app,
                    "object": f"{each.key.kind} {each.key.name}",
                    "path": change.path,
                    "why": change.why,
                }
                for change in changes
            ]
    return found


# -- explanations ----------------------------------------------------------------------------------


def explanation_document(
    plan: GroupPlan, verdict_of: VerdictOf, app: str, cluster: ClusterName | None
) -> Json:
    """For one app: whether each cluster takes it, and if not, who says so and why. Of few clusters
    the hardware is looked at closely: what is short, by how much, and what would help."""
    names = list(plan.combined.clusters) if cluster is None else [cluster]
    view = AppView(plan, app)
    picked = plan.pick.clusters[app] if isinstance(plan.pick, Pick) else ()
    is_close = len(names) <= MOST_CLOSELY
    return {
        "group": plan.group.name,
        "app": app,
        "fleet": fleet_document(plan.fleet),
        "picked": [each.cluster for each in picked],
        "clusters": limited(
            {
                **view.document(each),
                **(hardware_document(verdict_of(app, each)) if is_close else {}),
            }
            for each in names
        ),
    }


def hardware_document(verdict: HardwareVerdict) -> Json:
    return {
        "hardware": {
            "explanation": document(verdict.explanation),
            "options": msgspec.to_builtins(verdict.options),
            "contention": verdict.contention,
        },
        "fixes": [{"words": each.words} for each in verdict.explanation.relaxations],
    }


class AppView:
    """What controllers say of one app, looked up once for all clusters."""

    def __init__(self, plan: GroupPlan, app: str) -> None:
        self._plan, self._app = plan, app
        combined = plan.combined
        self._domains = {each: combined.domain(app, each) for each in combined.partitions}
        self._answers = {each.controller: each for each in combined.answers}
        self._contended: dict[ClusterName, list[str]] = {}
        for each in contention(plan):
            if app in each["apps"]:
                self._contended.setdefault(each["cluster"], []).append(each["words"])

    def document(self, cluster: ClusterName) -> Json:
        inventory = self._plan.fleet.clusters[cluster]
        excluded = list(self._exclusions(cluster))
        found: Json = {
            "cluster": cluster,
            "fits": not excluded,
            "ageSeconds": max(self._plan.fleet.taken_at - inventory.observed_at, 0),
            "score": sum(
                each.scores.get(self._app, {}).get(cluster, 0) for each in self._answers.values()
            ),
            "excludedBy": excluded,
        }
        contended = self._contended.get(cluster)
        return {**found, "contended": contended} if contended else found

    def _exclusions(self, cluster: ClusterName) -> Iterator[Json]:
        for controller, domain in self._domains.items():
            if cluster not in domain:
                why = self._answers[controller].refusals.get(self._app, {}).get(cluster)
                yield {
                    "controller": controller,
                    "token": why.token if why else "excluded",
                    "words": why.words if why else f"left out by {controller}",
                }
