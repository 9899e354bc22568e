"""Clusters, apps and intents in a few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from dovetail.core.device import Device
from dovetail.core.selectors.selector import Expression, Operator
from dovetail.devices.classes.documents import DeviceClass
from dovetail.intents.fleet import ClusterHealth, ClusterInventory, ClusterNode, FleetSnapshot
from dovetail.intents.group import (
    AllocatableRequirement,
    AnyRequirement,
    DeploymentGroup,
    DeviceRequirement,
    GroupApp,
    HpaIntent,
    LabelRequirement,
    ResourceConsumer,
)
from dovetail.intents.hpa.answer import HpaAnswer, hpa_answer
from dovetail.intents.hpa.budget import HpaBudget
from dovetail.podfit.objects import Node, Pod

Json = dict[str, Any]


def node(
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    taints: Sequence[Json] = (),
    unschedulable: bool = False,
    is_ready: bool = True,
    pods: Sequence[Pod] = (),
    devices: Sequence[Device] = (),
    held_devices: Sequence[str] = (),
    held: Mapping[str, int] | None = None,
    pins_cpus: bool | None = None,
    devices_by_claim: bool = False,
    cpu: int | str = 4,
    memory: int | str = "8Gi",
    more: Mapping[str, int | str] | None = None,
) -> ClusterNode:
    """`more`: further allocatable resources."""
    has = {"cpu": cpu, "memory": memory, "pods": 110, **(more or {})}
    amounts = {key: str(amount) for key, amount in has.items()}
    document = {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": str(is_ready)}],
        },
    }
    return ClusterNode(
        node=msgspec.convert(document, Node),
        pods=tuple(pods),
        devices=tuple(devices),
        held_devices=frozenset(held_devices),
        held=held or {},
        pins_cpus=pins_cpus,
        devices_by_claim=devices_by_claim,
    )


def pod(name: str, on: str, labels: Mapping[str, str] | None = None, **spec: Any) -> Pod:
    """`spec`: requests by resource in `requests`, else fields as the API has them."""
    requests = spec.pop("requests", {})
    container = {"name": "main", "resources": {"requests": requests}}
    document = {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"{on}/{name}",
            "labels": labels or {},
        },
        "spec": {"containers": [container], "nodeName": on, **spec},
        "status": {"phase": "Running"},
    }
    return msgspec.convert(document, Pod)


def gpu(name: str, **properties: str) -> Device:
    return Device(node="", name=name, kind="gpu", properties=properties)


def device_class(name: str, **fields: Any) -> DeviceClass:
    """Devices with all of these properties, each one of some values: `model="a|b"`."""
    expressions = tuple(
        Expression(key, Operator.IN, tuple(values.split("|"))) for key, values in fields.items()
    )
    return DeviceClass(name, (expressions,))


def cluster(
    name: str,
    *nodes: ClusterNode,
    classes: Sequence[DeviceClass] = (),
    state: ClusterHealth = ClusterHealth.READY,
    why: str = "",
) -> ClusterInventory:
    return ClusterInventory(
        name=f"p1+{name}",
        nodes=nodes,
        classes={each.name: each for each in classes},
        state=state,
        why=why,
    )


def fleet(*clusters: ClusterInventory) -> FleetSnapshot:
    ordered = sorted(clusters, key=lambda each: each.name)
    return FleetSnapshot(clusters={each.name: each for each in ordered}, taken_at=0)


def workload(
    name: str,
    kind: str = "Deployment",
    *,
    replicas: int = 1,
    requests: Mapping[str, str | int] | None = None,
    limits: Mapping[str, str | int] | None = None,
    containers: Sequence[Json] = (),
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> Json:
    """With a container `main`; `spec`: further fields of the pod."""
    main: Json = {"name": "main", "resources": {"requests": dict(requests or {})}}
    if limits:
        main["resources"]["limits"] = dict(limits)
    template = {
        "metadata": {"labels": {"app": name, **(labels or {})}},
        "spec": {"containers": [main, *containers], **spec},
    }
    group = {"Job": "batch/v1", "CronJob": "batch/v1", "Pod": "v1"}.get(kind, "apps/v1")
    found: Json = {"apiVersion": group, "kind": kind, "metadata": {"name": name}}
    if kind == "Pod":
        return {**found, **template, "metadata": {"name": name, **template["metadata"]}}
    if kind == "Job":
        return {**found, "spec": {"parallelism": replicas, "template": template}}
    if kind == "CronJob":
        job = {"spec": {"parallelism": replicas, "template": template}}
        return {**found, "spec": {"schedule": "0 3 * * *", "jobTemplate": job}}
    if kind == "DaemonSet":
        return {**found, "spec": {"template": template}}
    return {**found, "spec": {"replicas": replicas, "template": template}}


def needs(
    resource: str,
    requests: int | str,
    limits: int | str | None = None,
    *,
    name: str = "",
    optional: int | None = None,
) -> AllocatableRequirement:
    """`optional`: its weight; None: it is mandatory."""
    return AllocatableRequirement(
        name=name or f"needs-{resource}",
        mandatory=optional is None,
        weight=optional or 1,
        resource=resource,
        requests=Fraction(requests),
        limits=None if limits is None else Fraction(limits),
    )


def label(
    key: str, *values: str, operator: str = "In", name: str = "", optional: int | None = None
) -> LabelRequirement:
    return LabelRequirement(
        name=name or f"label-{key}",
        mandatory=optional is None,
        weight=optional or 1,
        key=key,
        operator=operator,
        values=values,
    )


def devices(
    of: str | DeviceClass, count: int = 1, *, name: str = "", optional: int | None = None
) -> DeviceRequirement:
    return DeviceRequirement(
        name=name or f"devices-{of if isinstance(of, str) else of.name}",
        mandatory=optional is None,
        weight=optional or 1,
        count=count,
        class_name=of if isinstance(of, str) else "",
        selector=None if isinstance(of, str) else of,
    )


def consumer(
    of: Json,
    *requirements: AnyRequirement,
    replicas: int | None = None,
    within_one: str = "",
    container: str = "main",
    name: str = "",
) -> ResourceConsumer:
    return ResourceConsumer(
        name=name or of["metadata"]["name"],
        kind=of["kind"],
        object_name=of["metadata"]["name"],
        container=container,
        replicas=replicas,
        within_one=within_one,
        requirements=requirements,
    )


class App(msgspec.Struct, frozen=True):
    name: str
    objects: tuple[Json, ...]
    consumers: tuple[ResourceConsumer, ...] = ()


def app(name: str, *objects: Json, consumers: Sequence[ResourceConsumer] = ()) -> App:
    return App(name, objects, tuple(consumers))


def needing(
    name: str,
    *requirements: AnyRequirement,
    kind: str = "Deployment",
    replicas: int = 1,
    within_one: str = "",
    **spec: Any,
) -> App:
    """An app of one workload, which is called as it is."""
    made = workload(name, kind, replicas=replicas, **spec)
    return app(name, made, consumers=[consumer(made, *requirements, within_one=within_one)])


def group(
    *apps: App, pin_nodes: bool = False, only: Sequence[str] | None = None
) -> DeploymentGroup:
    return DeploymentGroup(
        name="g",
        apps=tuple(GroupApp(name=each.name, objects=each.objects) for each in apps),
        hpa=tuple(
            HpaIntent(name=f"{each.name}-intent", app=each.name, consumers=each.consumers)
            for each in apps
            if each.consumers
        ),
        pin_nodes=pin_nodes,
        only_clusters=None if only is None else frozenset(f"p1+{one}" for one in only),
    )


class Asked:
    """An answer that is asked by short names of clusters."""

    def __init__(
        self,
        asked: DeploymentGroup | Sequence[App],
        *clusters: ClusterInventory,
        budget: HpaBudget | None = None,
    ) -> None:
        self.group = asked if isinstance(asked, DeploymentGroup) else group(*asked)
        self.fleet = fleet(*clusters)
        self.hpa: HpaAnswer = hpa_answer(self.group, self.fleet, budget)
        self.answer = self.hpa.answer

    def clusters(self, name: str) -> str:
        """Those that the app can go to."""
        found = self.answer.candidates
        listed = found.alternatives[0][name].parts[0].clusters  # type: ignore[union-attr]
        return " ".join(each.removeprefix("p1+") for each in listed.within(self.fleet.clusters))

    def words(self, name: str, on: str) -> str:
        return self.answer.refusals[name][f"p1+{on}"].words

    def token(self, name: str, on: str) -> str:
        return self.answer.refusals[name][f"p1+{on}"].token

    def score(self, name: str, on: str) -> int:
        return self.answer.scores.get(name, {}).get(f"p1+{on}", 0)

    def joint(self, on: str, *apps: str) -> int | None:
        return self.hpa.score_of_set(f"p1+{on}", apps)

    def sets(self, on: str) -> list[str]:
        """The sets of apps that fit there together, if it is contended."""
        contended = self.answer.candidates.contended  # type: ignore[union-attr]
        for each in contended:
            if each.cluster == f"p1+{on}":
                return ["+".join(sorted(one)) for one in each.fitting]
        return []

    def why(self, on: str) -> str:
        contended = self.answer.candidates.contended  # type: ignore[union-attr]
        return next(each.why for each in contended if each.cluster == f"p1+{on}")

    def nodes(self, on: str, *apps: str) -> dict[str, dict[str, int]]:
        """By workload, pods by node."""
        placed = self.hpa.placement(f"p1+{on}", apps)
        assert placed is not None
        return {each.name: dict(each.nodes) for one in placed.apps for each in one.workloads}
