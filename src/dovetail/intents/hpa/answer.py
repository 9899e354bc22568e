"""HPA answer: where the apps of a group can go by the hardware that they need, for a whole fleet.

`service/intents` has it made for each plan, in a thread. Clusters are sorted into shapes, each
shape is decided once, and the answer is put together from that: the clusters of each app, those
that apps contend for, scores by the weights of options, and why clusters are refused. More is
worked out when it is asked for: joint scores, placements on nodes, explanations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dovetail.core.quantity import BadQuantity
from dovetail.intents.candidates.cluster_set import ClusterSet
from dovetail.intents.candidates.partitions import (
    AppClusters,
    ClusterRefusal,
    ContendedCluster,
    ControllerAnswer,
    Part,
    PartitionCandidates,
)
from dovetail.intents.fleet import ClusterHealth, ClusterInventory, FleetSnapshot
from dovetail.intents.group import DeploymentGroup
from dovetail.intents.hpa.budget import HpaBudget
from dovetail.intents.hpa.cluster_shape import ShapedCluster, ShapeSorter, sight_of
from dovetail.intents.hpa.demand import demands_of
from dovetail.intents.hpa.explaining import (
    AppOnNodes,
    HardwareVerdict,
    OptionVerdict,
    unused_verdict,
)
from dovetail.intents.hpa.packer import Packer
from dovetail.intents.hpa.placement import ClusterPlacement, placement_of
from dovetail.intents.hpa.refusals import (
    AWAY,
    OUTSIDE_CLOUD,
)
from dovetail.intents.hpa.shape_decisions import GroupHardware, ShapeDecisions, members
from dovetail.intents.names import ClusterName

CONTROLLER = "hpa"
USED = (ClusterHealth.READY, ClusterHealth.STALE)


def hpa_answer(
    group: DeploymentGroup, fleet: FleetSnapshot, budget: HpaBudget | None = None
) -> HpaAnswer:
    """Raises BadManifest, UnknownIntentApp, UnknownWorkload, UnknownContainer and Uneditable: the
    group asks for what its manifests do not have."""
    return HpaAnswer(group, fleet, budget or HpaBudget())


class HpaAnswer:
    def __init__(self, group: DeploymentGroup, fleet: FleetSnapshot, budget: HpaBudget) -> None:
        self._deployment_group, self._fleet, self._budget = group, fleet, budget
        self.hardware = GroupHardware(demands_of(group))
        self._sight = sight_of(self.hardware.apps)
        self._refused: dict[ClusterName, ClusterRefusal] = {}
        """Clusters that are not looked at."""
        self._clusters: dict[ClusterName, ShapedCluster] = {}
        self._sort()
        self._decisions: list[ShapeDecisions] = []
        self._decide()
        self.answer = self._answer()

    def _sort(self) -> None:
        sorter = ShapeSorter(self._sight)
        for name, cluster in self._fleet.clusters.items():
            refusal = self._unused(cluster)
            if refusal is None:
                try:
                    self._clusters[name] = sorter.shaped(cluster)
                    continue
                except BadQuantity as error:
                    refusal = ClusterRefusal(token=AWAY, words=f"its inventory: {error}")
            self._refused[name] = refusal
        self._shapes = sorter.shapes

    def _decide(self) -> None:
        """Shape by shape, each with its share of the steps that are left."""
        for at, shape in enumerate(self._shapes):
            left = max(self._budget.all_steps - self.steps, 0)
            allowance = left // (len(self._shapes) - at)
            self._decisions.append(
                ShapeDecisions(shape, self.hardware, self._sight, self._budget, allowance)
            )

    def _unused(self, cluster: ClusterInventory) -> ClusterRefusal | None:
        only = self._deployment_group.only_clusters
        if only is not None and cluster.name not in only:
            return ClusterRefusal(token=OUTSIDE_CLOUD, words="it is not in the logical cloud")
        if cluster.state not in USED:
            why = f": {cluster.why}" if cluster.why else ""
            return ClusterRefusal(token=AWAY, words=f"the cluster does not answer{why}")
        return None

    # -- the answer

    def _answer(self) -> ControllerAnswer:
        apps = [app.name for app in self.hardware.apps]
        names = list(self._fleet.clusters)
        clusters: dict[str, AppClusters] = {}
        scores: dict[str, dict[ClusterName, int]] = {}
        refusals: dict[str, dict[ClusterName, ClusterRefusal]] = {}
        for at, app in enumerate(apps):
            fitting = [
                name for name, each in self._clusters.items() if self._of(each).fitting >> at & 1
            ]
            listed = ClusterSet.allow(fitting).compact(names)
            clusters[app] = AppClusters(parts=(Part(1, listed),), is_counted=False)
            weighed = ((name, self._of(self._clusters[name]).score(at)) for name in fitting)
            scores[app] = {name: score for name, score in weighed if score}
            refusals[app] = dict(self._refusals(at))
        return ControllerAnswer(
            controller=CONTROLLER,
            candidates=PartitionCandidates(
                alternatives=(clusters,),
                contended=tuple(self._contended()),
                is_complete=all(each.is_proven for each in self._decisions),
            ),
            scores={app: found for app, found in scores.items() if found},
            refusals={app: found for app, found in refusals.items() if found},
        )

    def _of(self, cluster: ShapedCluster) -> ShapeDecisions:
        return self._decisions[cluster.shape.number]

    def _refusals(self, app: int) -> Iterator[tuple[ClusterName, ClusterRefusal]]:
        for name in self._fleet.clusters:
            cluster = self._clusters.get(name)
            if cluster is None:
                yield name, self._refused[name]
            elif not self._of(cluster).fitting >> app & 1:
                found = self._of(cluster).refusal(app)
                words = found.words_for(cluster.names()) if found.nodes else found.words
                yield name, ClusterRefusal(token=found.token, words=words)

    def _contended(self) -> Iterator[ContendedCluster]:
        apps = [app.name for app in self.hardware.apps]
        for name, cluster in self._clusters.items():
            decisions = self._of(cluster)
            shared = decisions.shared
            if not shared.is_additive:
                fitting = tuple(frozenset(apps[at] for at in members(each)) for each in shared.sets)
                yield ContendedCluster(name, fitting, decisions.contention())

    @property
    def shapes(self) -> int:
        """How many kinds of clusters were told apart."""
        return len(self._decisions)

    @property
    def steps(self) -> int:
        """What the shapes took that were decided."""
        return sum(each.spent for each in self._decisions)

    # -- what else is asked

    def _mask(self, apps: Iterable[str]) -> int:
        wanted = frozenset(apps)
        return sum(1 << at for at, app in enumerate(self.hardware.apps) if app.name in wanted)

    def score_of_set(self, cluster: ClusterName, apps: Iterable[str]) -> int | None:
        """The weight of the options that these apps get there together; None: they do not fit."""
        found = self._clusters.get(cluster)
        if found is None:
            return None
        return self._of(found).joint_score(self._mask(apps))

    def placement(self, cluster: ClusterName, apps: Iterable[str]) -> ClusterPlacement | None:
        """Where the pods of these apps are planned there, together; None: they do not fit."""
        found = self._clusters.get(cluster)
        if found is None:
            return None
        return placement_of(
            found,
            self._of(found),
            self._sight,
            self._mask(apps),
            pins_all=self._deployment_group.pin_nodes,
        )

    def explanation(self, app: str, cluster: ClusterName) -> HardwareVerdict:
        """Why the app fits there or not, by itself, and what would help. Raises KeyError if the
        fleet has no such cluster."""
        if cluster in self._refused:
            return unused_verdict(app, cluster, self._refused[cluster].words)
        found = self._clusters[cluster]
        at = next(at for at, each in enumerate(self.hardware.apps) if each.name == app)
        there = AppOnNodes(
            self.hardware.apps[at], self._packer(found), lambda: self._packer(found, is_idle=True)
        )
        fits = bool(self._of(found).fitting >> at & 1)
        granted = self._of(found).granted(at) if fits else 0
        options = tuple(
            OptionVerdict(
                consumer=each.consumer,
                requirement=each.requirement.name,
                weight=each.requirement.weight,
                granted=bool(granted >> bit & 1),
                words="" if granted >> bit & 1 or not fits else there.option_words(bit),
            )
            for bit, each in enumerate(self.hardware.apps[at].options)
        )
        return HardwareVerdict(
            app=app,
            cluster=cluster,
            explanation=there.explanation(),
            score=self._of(found).score(at) if fits else 0,
            options=options,
            contention=self._of(found).contention() if fits else "",
        )

    def _packer(self, cluster: ShapedCluster, *, is_idle: bool = False) -> Packer:
        devices, steps = self._sight.devices, self._budget.steps
        return Packer(cluster.inventory, cluster.nodes, devices, steps, is_idle=is_idle)
