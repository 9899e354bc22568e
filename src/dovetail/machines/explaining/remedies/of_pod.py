"""What the owner of a pod can change: another type, fewer demands of its own, a smaller group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from dovetail.core.explanation import Reason
from dovetail.machines.explaining.cases import GuestCase
from dovetail.machines.explaining.judging import Judgement
from dovetail.machines.explaining.remedies.remedy import Remedy, Supposition
from dovetail.machines.injection import REQUIRED, InjectionRefused, inject
from dovetail.machines.names import (
    CREATOR,
    ENABLED,
    INJECT_RESOURCE,
    MACHINE_TYPE,
    UNIT_GATE,
    UNIT_GROUP_SIZE,
    type_key,
)
from dovetail.machines.placement_rules import expressions_of
from dovetail.machines.pods import is_gated_guest, is_opted_in, other_gates, type_of, unit_group_of
from dovetail.machines.shapes import UnitShape, shapes_of
from dovetail.podfit.filters.taints import first_untolerated
from dovetail.podfit.objects import Affinity, NodeAffinity, Pod, Toleration
from dovetail.podfit.pod_request import pod_request_of


def pod_remedies(case: GuestCase, found: Judgement) -> Iterator[list[Remedy]]:
    reasons = found.reasons
    if not is_gated_guest(case.pod) and Reason.MACHINE_TYPE not in reasons:
        # Nothing was injected: before that, nothing else can help.
        yield list(created_anew(case))
        return
    yield from ([each] for each in other_types(case))
    if Reason.SCHEDULING_GATE in reasons:
        yield [gates_lifted(case.pod)]
    if Reason.UNIT_SHAPE in reasons:
        yield list(created_anew(case))
    if Reason.UNIT_GROUP in reasons:
        yield list(smaller_group(case))
    if Reason.NODE_AFFINITY in reasons:
        yield list(nodes_of_its_own(case))
    if Reason.TAINT in reasons:
        yield list(tolerations(case, found))
    yield from ([each] for each in demands_on_pods(case.pod) if each.reason in reasons)


# -- the shape -------------------------------------------------------------------------------------


def other_types(case: GuestCase) -> Iterator[Remedy]:
    """Those whose units are as large in everything."""
    shapes = shapes_of(case.spec)
    name = type_of(case.pod)
    asked = shapes[name].amounts if name in shapes else dict(pod_request_of(case.pod).amounts)
    for shape in shapes.values():
        covers = all(
            shape.amounts.get(key, 0) >= amount for key, amount in asked.items() if key != "pods"
        )
        if shape.name == name or not covers or of_type(case, shape) is None:
            continue
        yield Remedy(
            reason=Reason.MACHINE_TYPE,
            old=name,
            new=shape.name,
            words=f"it is of type {shape.name} ({amounts_words(shape)})",
            query=f"{MACHINE_TYPE}={shape.name}",
            suppose=_as_type(shape),
        )


def amounts_words(shape: UnitShape) -> str:
    """Such as `cpu 40, memory 128Gi`."""
    return ", ".join(f"{name} {amount}" for name, amount in shape.requests.items())


def _as_type(shape: UnitShape) -> Supposition:
    def suppose(case: GuestCase) -> GuestCase:
        pod = of_type(case, shape)
        return case if pod is None else case.with_pod(pod)

    return suppose


def of_type(case: GuestCase, shape: UnitShape) -> Pod | None:
    """The pod as it would be if it had been created with that type; None: it would be refused."""
    group = case.snapshot.machine.group
    raw: dict[str, Any] = msgspec.to_builtins(case.pod)
    meta, spec = raw["metadata"], raw["spec"]
    _take_out(spec, injected_expressions(case, type_of(case.pod)))
    meta["labels"] = {**meta["labels"], MACHINE_TYPE: shape.name}
    creator = case.pod.metadata.annotations.get(CREATOR, "")
    try:
        return msgspec.convert(inject(raw, shape, group, creator), Pod)
    except InjectionRefused:
        return None


def injected_expressions(case: GuestCase, name: str) -> list[dict[str, Any]]:
    """What admission wrote into the pod's node affinity."""
    shape = shapes_of(case.spec).get(name)
    if shape is not None:
        return expressions_of(shape, case.snapshot.machine.group)
    group = case.snapshot.machine.group
    return [{"key": type_key(name), "operator": "In", "values": [group]}]


def _take_out(spec: dict[str, Any], expressions: Iterable[Mapping[str, Any]]) -> None:
    """Of every term of the required node affinity; a term that says nothing any more goes."""
    written = [(each["key"], each["operator"], tuple(each["values"])) for each in expressions]
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get(REQUIRED)
    if required is None:
        return
    terms = []
    for term in required["nodeSelectorTerms"]:
        left = [
            each
            for each in term.get("matchExpressions") or ()
            if (each["key"], each["operator"], tuple(each.get("values") or ())) not in written
        ]
        if left or term.get("matchFields"):
            terms.append({**term, "matchExpressions": left})
    if terms:
        required["nodeSelectorTerms"] = terms
    else:
        affinity[REQUIRED] = None


def created_anew(case: GuestCase) -> Iterator[Remedy]:
    """With what admission gives to guests of its type now."""
    shape = shapes_of(case.spec).get(type_of(case.pod))
    if shape is None or of_type(case, shape) is None:
        return
    words, query = "it is created anew, with the shape that its type has now", ""
    namespace = case.pod.metadata.namespace
    if not is_gated_guest(case.pod) and not is_opted_in(case.snapshot.namespaces.get(namespace)):
        words = f"namespace {namespace!r} is opted in and the pod is created anew"
        query = f"{INJECT_RESOURCE}={ENABLED}"
    yield Remedy(
        reason=Reason.UNIT_SHAPE,
        old="spec.containers.resources",
        new=amounts_words(shape),
        words=words,
        query=query,
        suppose=_as_type(shape),
    )


# -- its own demands -------------------------------------------------------------------------------


def gates_lifted(pod: Pod) -> Remedy:
    gates = other_gates(pod)
    left = tuple(each for each in pod.spec.scheduling_gates if each.name == UNIT_GATE)
    return Remedy(
        reason=Reason.SCHEDULING_GATE,
        old=", ".join(gates),
        new=None,
        words=f"the scheduling gate {' and '.join(gates)} is lifted",
        suppose=lambda case: _with_spec(case, scheduling_gates=left),
    )


def _with_spec(case: GuestCase, **fields: Any) -> GuestCase:
    return case.with_pod(replace(case.pod, spec=replace(case.pod.spec, **fields)))


def nodes_of_its_own(case: GuestCase) -> Iterator[Remedy]:
    """Without the pod's own node selector, or its own node affinity."""
    selector = case.pod.spec.node_selector
    if selector:
        text = ",".join(f"{key}={value}" for key, value in selector.items())
        yield Remedy(
            reason=Reason.NODE_AFFINITY,
            old=f"nodeSelector {text}",
            new=None,
            words=f"its nodeSelector {text} is dropped",
            query="spec.nodeSelector",
            suppose=lambda case: _with_spec(case, node_selector={}),
        )
    raw: dict[str, Any] = msgspec.to_builtins(case.pod.spec)
    _take_out(raw, injected_expressions(case, type_of(case.pod)))
    affinity = (raw.get("affinity") or {}).get("nodeAffinity") or {}
    shape = shapes_of(case.spec).get(type_of(case.pod))
    if affinity.get(REQUIRED) and shape is not None:
        yield Remedy(
            reason=Reason.NODE_AFFINITY,
            old="affinity.nodeAffinity",
            new=None,
            words="its own node affinity is dropped",
            query="spec.affinity.nodeAffinity",
            suppose=_without_own_affinity(shape),
        )


def _without_own_affinity(shape: UnitShape) -> Supposition:
    def suppose(case: GuestCase) -> GuestCase:
        affinity = case.pod.spec.affinity or Affinity()
        bare = replace(affinity, node_affinity=NodeAffinity())
        return _as_type(shape)(_with_spec(case, affinity=bare))

    return suppose


def tolerations(case: GuestCase, found: Judgement) -> Iterator[Remedy]:
    """Of taints that others put on the nodes that come nearest."""
    had = case.pod.spec.tolerations
    for place in found.nearest:
        node = case.snapshot.nodes.get(place.name or "")
        taint = first_untolerated(node.spec.taints, had) if node is not None else None
        if taint is None:
            continue
        text = f"{taint.key}={taint.value}:{taint.effect}"
        more = Toleration(key=taint.key, operator="Exists", effect=taint.effect)
        yield Remedy(
            reason=Reason.TAINT,
            old=text,
            new="tolerated",
            words=f"it tolerates the taint {text} of node {place.name}",
            query="spec.tolerations",
            suppose=lambda case, more=more: _with_spec(  # type: ignore[misc]
                case, tolerations=(*case.pod.spec.tolerations, more)
            ),
        )


def demands_on_pods(pod: Pod) -> Iterator[Remedy]:
    """All of one kind dropped."""
    affinity = pod.spec.affinity or Affinity()
    without_ports = tuple(replace(each, ports=()) for each in pod.spec.containers)
    changes: tuple[tuple[Reason, str, dict[str, Any]], ...] = (
        (Reason.HOST_PORT, "host ports", {"containers": without_ports}),
        (
            Reason.TOPOLOGY_SPREAD,
            "topology spread constraints",
            {"topology_spread_constraints": ()},
        ),
        (
            Reason.POD_AFFINITY,
            "pod affinity",
            {"affinity": replace(affinity, pod_affinity=None)},
        ),
        (
            Reason.POD_ANTI_AFFINITY,
            "pod anti-affinity",
            {"affinity": replace(affinity, pod_anti_affinity=None)},
        ),
    )
    for reason, what, fields in changes:
        yield Remedy(
            reason=reason,
            old=what,
            new=None,
            words=f"it has no {what}",
            suppose=lambda case, fields=fields: _with_spec(case, **fields),  # type: ignore[misc]
        )


# -- its unit group --------------------------------------------------------------------------------


def smaller_group(case: GuestCase) -> Iterator[Remedy]:
    """As many pods of its group as get their units at once: the largest number first."""
    members = case.members()
    name = unit_group_of(case.pod).partition("/")[2]
    for size in range(len(members), 0, -1):
        yield Remedy(
            reason=Reason.UNIT_GROUP,
            old=case.pod.metadata.annotations.get(UNIT_GROUP_SIZE, ""),
            new=str(size),
            words=f"unit group {name!r} has no more than {size} of its pods",
            query=f"{UNIT_GROUP_SIZE}={size}",
            suppose=_of_group(size),
        )


def _of_group(size: int) -> Supposition:
    def suppose(case: GuestCase) -> GuestCase:
        members = case.members()
        staying = {each.metadata.uid: _sized(each, size) for each in members[:size]}
        leaving = {each.metadata.uid for each in members[size:]}
        guests = {
            uid: staying.get(uid, each)
            for uid, each in case.snapshot.guests.items()
            if uid not in leaving
        }
        changed = replace(case, snapshot=replace(case.snapshot, guests=guests))
        return changed.with_pod(staying[case.pod.metadata.uid])

    return suppose


def _sized(pod: Pod, size: int) -> Pod:
    annotations = {**pod.metadata.annotations, UNIT_GROUP_SIZE: str(size)}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))
