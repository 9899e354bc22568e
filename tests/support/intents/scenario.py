"""The acceptance scenario of hardware intents (fwall and analytics on four clusters), with its
variants V1 to V10: as typed values, as manifests, and as REST calls that make the same.

    base().group, base().fleet             what controllers are given
    base().posts(Spelling.SPEC)            the same over HTTP
    base().snapshots                       by cluster, as kubectl lists it
    v3().group ...                         likewise, of a variant
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import msgspec

from dovetail.core.quantity import parse
from dovetail.intents.fleet import ClusterHealth, FleetSnapshot
from dovetail.intents.group import (
    AllocatableRequirement,
    AppAffinityRule,
    AppPlacementRule,
    ClusterTerm,
    DeploymentGroup,
    GroupApp,
    HpaIntent,
    PlacementGroup,
    ResourceConsumer,
)
from tests.support.intents import charts, hardware, rest_documents
from tests.support.intents.rest_documents import ConsumerText, Post, RequirementText, Spelling

Json = dict[str, Any]

FWALL, ANALYTICS = "fwall", "analytics"
C1, C2, C3, C4 = (hardware.name_of(each) for each in hardware.CLUSTERS)
GENERIC_CLUSTERS: Mapping[str, tuple[str, ...]] = {FWALL: ("c1", "c2", "c3"), ANALYTICS: ()}
"""By app, any of these; any at all of analytics."""
UNITS = {"": 10**6, "MB": 10**6, "GB": 10**9, "MiB": 2**20, "GiB": 2**30}
"""Of memory."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What the variants change of the base case."""

    dig: str = "my-dig1"
    apps: tuple[str, ...] = (FWALL, ANALYTICS)
    has_generic: bool = True
    analytics_count: int | None = None
    core_replicas: int | None = None
    gpu_mandatory: bool = False
    api_cpu: str | int = 1
    core_memory: int = 1000
    core_memory_units: str = "MB"
    affinity: tuple[AppAffinityRule, ...] = ()
    away: tuple[str, ...] = ()
    """Clusters that do not answer, by their short names."""
    cordoned: tuple[str, ...] = ()
    c2_n2_cpu: str = "1"

    # -- what clusters have

    @property
    def snapshots(self) -> dict[str, Json]:
        """By cluster's short name, as kubectl lists it."""
        found = {}
        for cluster, nodes in hardware.CLUSTERS.items():
            free = {name: dict(each) for name, each in nodes.items()}
            if cluster == "c2":
                free["n2"]["cpu"] = self.c2_n2_cpu
            found[cluster] = hardware.kubectl_list(free, cordoned=cluster in self.cordoned)
        return found

    @property
    def fleet(self) -> FleetSnapshot:
        return hardware.snapshot(
            *(
                hardware.inventory(
                    cluster,
                    document,
                    state=ClusterHealth.AWAY if cluster in self.away else ClusterHealth.READY,
                )
                for cluster, document in self.snapshots.items()
            )
        )

    # -- what is asked for

    @property
    def objects(self) -> dict[str, list[Json]]:
        """By app."""
        found = {FWALL: charts.fwall_objects(), ANALYTICS: charts.analytics_objects()}
        return {app: found[app] for app in self.apps}

    @property
    def group(self) -> DeploymentGroup:
        return DeploymentGroup(
            name=rest_documents.group_path(self.dig),
            apps=tuple(
                GroupApp(name=app, objects=tuple(objects)) for app, objects in self.objects.items()
            ),
            hpa=tuple(
                HpaIntent(
                    name=f"{app}-hpa-intent",
                    app=app,
                    consumers=tuple(map(_consumer, self.consumers(app))),
                )
                for app in self.apps
            ),
            placement=tuple(self._placement()) if self.has_generic else (),
            affinity=self.affinity,
        )

    def consumers(self, app: str) -> tuple[ConsumerText, ...]:
        return self._fwall() if app == FWALL else self._analytics()

    def _fwall(self) -> tuple[ConsumerText, ...]:
        return (
            ConsumerText(
                name="core-fwall",
                kind="StatefulSet",
                container="palo-alto-e3000",
                replicas=self.core_replicas,
                requirements=(
                    RequirementText(
                        name="core-fwall-cpu-requirement", resource="cpu", requests=4, limits=4
                    ),
                    RequirementText(
                        name="core-fwall-RAM-needs",
                        resource="memory",
                        requests=self.core_memory,
                        limits=self.core_memory,
                        units=self.core_memory_units,
                    ),
                    RequirementText(
                        name="core-fwall-gpu-needs",
                        resource=hardware.GPU,
                        limits=1,
                        mandatory=self.gpu_mandatory,
                        weight=9,
                    ),
                ),
            ),
            ConsumerText(
                name="api-server",
                kind="Deployment",
                container="nginx",
                requirements=(
                    RequirementText(
                        name="api-server-cpu-needs",
                        resource="cpu",
                        requests=self.api_cpu,
                        limits=2,
                    ),
                    RequirementText(
                        name="api-server-ram-needs", resource="memory", requests=200, units="MB"
                    ),
                ),
            ),
        )

    @staticmethod
    def _analytics() -> tuple[ConsumerText, ...]:
        return (
            ConsumerText(
                name="ai-model",
                kind="StatefulSet",
                container="openvino",
                requirements=(
                    RequirementText(name="ai-model-cpu-requirement", resource="cpu", requests=2),
                ),
            ),
            ConsumerText(
                name="logger",
                kind="Deployment",
                container="logger",
                requirements=(
                    RequirementText(
                        name="logger-cpu-needs", resource=hardware.QAT, requests=1, limits=1
                    ),
                ),
            ),
        )

    def _placement(self) -> Iterator[AppPlacementRule]:
        for app in self.apps:
            names = GENERIC_CLUSTERS[app]
            terms = tuple(ClusterTerm(provider=hardware.PROVIDER, cluster=one) for one in names)
            everywhere = (ClusterTerm(provider=hardware.PROVIDER, label=hardware.LABEL),)
            count = self._counts.get(app)
            yield AppPlacementRule(
                app=app,
                groups=(PlacementGroup(terms=terms or everywhere, count=count or 1),),
                count=count,
            )

    @property
    def _counts(self) -> dict[str, int]:
        return {} if self.analytics_count is None else {ANALYTICS: self.analytics_count}

    # -- over HTTP

    def posts(self, spelling: Spelling = Spelling.CANONICAL) -> list[Post]:
        """Every POST that makes it, in order, up to (and without) approve and instantiate."""
        return [
            *rest_documents.provider_posts(self.snapshots),
            *rest_documents.composite_posts(self.objects),
            *self.intent_posts(spelling),
        ]

    def intent_posts(self, spelling: Spelling = Spelling.CANONICAL) -> list[Post]:
        """The deployment intent group and its intents: for further groups of the same apps."""
        found = [*rest_documents.group_posts(self.dig)]
        if self.has_generic:
            clusters = {app: GENERIC_CLUSTERS[app] for app in self.apps}
            found += rest_documents.placement_posts(self.dig, clusters, self._counts)
        for app in self.apps:
            found += rest_documents.hpa_posts(self.dig, app, self.consumers(app), spelling)
        lists = {each.app: _lists(each) for each in self.affinity}
        return [*found, *rest_documents.affinity_posts(self.dig, lists)]


def base() -> Scenario:
    return Scenario()


def v1_away() -> Scenario:
    """c1 does not answer."""
    return Scenario(away=("c1",))


def v1_cordoned() -> Scenario:
    return Scenario(cordoned=("c1",))


def v2(count: int = 2) -> Scenario:
    """Analytics on so many clusters; 4 are more than there can be."""
    return Scenario(analytics_count=count)


def v3() -> Scenario:
    """Two replicas of core-fwall."""
    return Scenario(core_replicas=2)


def v4() -> Scenario:
    """The GPU is mandatory."""
    return Scenario(gpu_mandatory=True)


def v5() -> Scenario:
    """The apps keep apart."""
    return Scenario(affinity=(AppAffinityRule(app=FWALL, deny=(ANALYTICS,)),))


def v6(*, has_generic: bool = True) -> Scenario:
    """The apps have to be together."""
    rules = (
        AppAffinityRule(app=FWALL, require=(ANALYTICS,)),
        AppAffinityRule(app=ANALYTICS, require=(FWALL,)),
    )
    return Scenario(affinity=rules, has_generic=has_generic)


def v7(number: int = 1) -> Scenario:
    """One of several groups that are the same: fwall alone, hardware intents alone."""
    return Scenario(dig=f"my-dig{number}", apps=(FWALL,), has_generic=False)


def v8(c2_n2_cpu: str = "1") -> Scenario:
    """Half a CPU for api-server; of the second node of c2, so much is free."""
    return Scenario(api_cpu="500m", c2_n2_cpu=c2_n2_cpu)


def v9() -> Scenario:
    """A controller times out: nothing is different here."""
    return Scenario()


def v10(units: str = "GB") -> Scenario:
    """Two of these units of memory for core-fwall."""
    return Scenario(core_memory=2, core_memory_units=units)


def _consumer(text: ConsumerText) -> ResourceConsumer:
    return ResourceConsumer(
        name=text.name,
        kind=text.kind,
        object_name=text.name,
        api_version="apps/v1",
        container=text.container,
        replicas=text.replicas,
        requirements=tuple(map(_requirement, text.requirements)),
    )


def _requirement(text: RequirementText) -> AllocatableRequirement:
    limits = None if text.limits is None else _amount(text, text.limits)
    requests = limits if text.requests is None else _amount(text, text.requests)
    assert requests is not None
    return AllocatableRequirement(
        name=text.name,
        mandatory=text.mandatory,
        weight=text.weight or 1,
        resource=text.resource,
        requests=requests,
        limits=limits,
    )


def _amount(text: RequirementText, amount: str | int) -> Fraction:
    return parse(str(amount)) * (UNITS[text.units] if text.resource == "memory" else 1)


def _lists(rule: AppAffinityRule) -> Json:
    found: Json = {} if rule.allow is None else {"allow": list(rule.allow)}
    for key, apps in (("deny", rule.deny), ("require", rule.require)):
        if apps:
            found[key] = list(apps)
    return found
