"""Workloads: the objects of an app that make pods, with their pod templates and how many they make.

The HPA controller packs them (`pods_of`, `with_requirements`), `editing` edits them; both apply
requirements by the same rule (`requirements.apply`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from dovetail.intents.group import AnyRequirement, GroupApp, ManifestObject, ResourceConsumer
from dovetail.intents.manifests import requirements as rules
from dovetail.intents.manifests.drafts import Draft
from dovetail.intents.manifests.errors import BadManifest, Uneditable, UnknownWorkload
from dovetail.intents.manifests.requirements import GrantedConsumer
from dovetail.intents.manifests.templates import RawTemplate, pod_of
from dovetail.podfit.objects import Pod

FieldPath = tuple[str, ...]


class WorkloadKind(msgspec.Struct, frozen=True, kw_only=True):
    """Where objects of a kind have their pod template, and the number of their pods."""

    groups: tuple[str, ...]
    """API groups; the first is today's."""
    template: FieldPath = ("spec", "template")
    """Empty: the object is the pod."""
    replicas: FieldPath = ()
    """Empty: it makes one, or one for each node."""
    completions: FieldPath = ()
    """No more pods than these run at a time."""
    per_node: bool = False


KINDS: Mapping[str, WorkloadKind] = {
    "Deployment": WorkloadKind(groups=("apps", "extensions"), replicas=("spec", "replicas")),
    "StatefulSet": WorkloadKind(groups=("apps",), replicas=("spec", "replicas")),
    "DaemonSet": WorkloadKind(groups=("apps", "extensions"), per_node=True),
    "ReplicaSet": WorkloadKind(groups=("apps", "extensions"), replicas=("spec", "replicas")),
    "ReplicationController": WorkloadKind(groups=("",), replicas=("spec", "replicas")),
    "Job": WorkloadKind(
        groups=("batch",), replicas=("spec", "parallelism"), completions=("spec", "completions")
    ),
    "CronJob": WorkloadKind(
        groups=("batch",),
        template=("spec", "jobTemplate", "spec", "template"),
        replicas=("spec", "jobTemplate", "spec", "parallelism"),
        completions=("spec", "jobTemplate", "spec", "completions"),
    ),
    "Pod": WorkloadKind(groups=("",), template=()),
}


class AppWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """An object that makes pods, and its pods as they are with what was granted so far."""

    kind: str
    name: str
    pod: Pod
    """One of its pods, as podfit reads it."""
    count: int
    """How many run at a time; of a CronJob, in one run; 1 for each node if `per_node`."""
    per_node: bool = False
    object_index: int
    """Its place among the app's objects."""
    completions: int | None = None
    """Of a Job: no more pods than these run at a time, whatever its parallelism."""
    template: RawTemplate
    """As the app has it, without any requirement."""
    granted: tuple[GrantedConsumer, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.kind} {self.name}"


def kind_of(manifest: ManifestObject) -> WorkloadKind | None:
    """None: the object makes no pods. `batch/v1beta1` and the like count by their group."""
    group, slash, _ = str(manifest.get("apiVersion", "")).partition("/")
    known = KINDS.get(str(manifest.get("kind", "")))
    return known if known and (group if slash else "") in known.groups else None


def title_of(manifest: ManifestObject) -> str:
    return f"{manifest.get('kind')} {value_at(manifest, ('metadata', 'name')) or '(no name)'}"


def value_at(value: Mapping[str, Any], path: FieldPath) -> Any:
    """None if anything on the way is missing or null."""
    found: Any = value
    for key in path:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key)
    return found


def pods_of(app: GroupApp, namespace: str) -> tuple[AppWorkload, ...]:
    """In the order of the app's objects. Raises BadManifest."""
    found = []
    for index, manifest in enumerate(app.objects):
        kind = kind_of(manifest)
        if kind is not None:
            found.append(_workload_of(manifest, kind, index, namespace))
    return tuple(found)


def template_of(manifest: ManifestObject, kind: WorkloadKind) -> RawTemplate:
    """Raises BadManifest."""
    template = value_at(manifest, kind.template)
    if not isinstance(template, Mapping) or not isinstance(template.get("spec"), Mapping):
        path = ".".join((*kind.template, "spec"))
        raise BadManifest(title_of(manifest), path, "there are no pods without it")
    return template


def _workload_of(
    manifest: ManifestObject, kind: WorkloadKind, index: int, namespace: str
) -> AppWorkload:
    where = title_of(manifest)
    name = value_at(manifest, ("metadata", "name"))
    if not isinstance(name, str) or not name:
        raise BadManifest(where, "metadata.name", "an object has a name")
    template = template_of(manifest, kind)
    namespace = value_at(manifest, ("metadata", "namespace")) or namespace
    replicas = _number_at(manifest, kind.replicas, where)
    completions = _number_at(manifest, kind.completions, where)
    return AppWorkload(
        kind=str(manifest["kind"]),
        name=name,
        pod=pod_of(template, where=where, name=name, namespace=namespace, per_node=kind.per_node),
        count=_at_a_time(1 if replicas is None else replicas, completions),
        per_node=kind.per_node,
        object_index=index,
        completions=completions,
        template=template,
    )


def _number_at(manifest: ManifestObject, path: FieldPath, where: str) -> int | None:
    number = value_at(manifest, path) if path else None
    if number is None or (type(number) is int and number >= 0):
        return number
    raise BadManifest(where, ".".join(path), f"{number!r}: a whole number is expected")


def workload_of(workloads: Iterable[AppWorkload], consumer: ResourceConsumer) -> AppWorkload:
    """The one that the consumer names; without a kind, the only one of the name. Raises
    UnknownWorkload, which says what there is."""
    workloads = tuple(workloads)
    kind = consumer.kind.lower()
    found = [
        each
        for each in workloads
        if each.name == consumer.object_name and kind in ("", each.kind.lower())
    ]
    if len(found) == 1:
        return found[0]
    wanted = f"{consumer.kind} {consumer.object_name}".strip()
    if found:
        kinds = ", ".join(each.kind for each in found)
        raise UnknownWorkload(
            f"consumer {consumer.name}: which {wanted} is meant is not said: there are {kinds}"
        )
    there = ", ".join(each.title for each in workloads) or "none"
    raise UnknownWorkload(
        f"consumer {consumer.name}: there is no {wanted} among the app's workloads: {there}"
    )


def with_requirements(
    workload: AppWorkload, consumer: ResourceConsumer, requirements: Sequence[AnyRequirement]
) -> AppWorkload:
    """The workload with exactly these requirements of the consumer applied, and with its replicas;
    those of other consumers stay. What was applied of this one before is forgotten.

    Every one of them has to hold, optional ones too: packing asks whether it can. Devices are not
    in the pod: podfit does not count them. Raises UnknownContainer and Uneditable.
    """
    others = (each for each in workload.granted if each.consumer != consumer)
    granted = (*others, GrantedConsumer(consumer, tuple(requirements)))
    draft = Draft(workload.template, workload.title)
    rules.apply(
        draft,
        [replace(each, requirements=rules.as_mandatory(each.requirements)) for each in granted],
    )
    pod = pod_of(
        draft.value,
        where=workload.title,
        name=workload.name,
        namespace=workload.pod.metadata.namespace,
        per_node=workload.per_node,
    )
    replicas = replicas_for(workload, (each.consumer for each in granted))
    count = workload.count if replicas is None else _at_a_time(replicas, workload.completions)
    return replace(workload, pod=pod, count=count, granted=granted)


def replicas_for(workload: AppWorkload, consumers: Iterable[ResourceConsumer]) -> int | None:
    """The most that any of its consumers says. Raises Uneditable."""
    told = [each for each in consumers if each.replicas is not None]
    for each in told:
        if not KINDS[workload.kind].replicas and each.replicas != 1:
            makes = "a pod on each node" if workload.per_node else "one pod"
            raise Uneditable(
                f"consumer {each.name}: {each.replicas} replicas: a {workload.kind} makes {makes}"
            )
    return max((each.replicas or 0 for each in told), default=None)


def _at_a_time(replicas: int, completions: int | None) -> int:
    return replicas if completions is None else min(replicas, completions)
