"""Injection: what admission changes in a guest so that the pod becomes one unit of its type.

The webhook calls it on the pod as the API server has it, and the admission policy is tested against
it. The pod is the unit: one container gets the shape less what the other containers, the sidecars
and the overhead take. Whatever is not named here stays as it was, fields unknown to us included;
what was injected already is not injected again.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from fractions import Fraction
from typing import Any

from dovetail.core.errors import Malformed
from dovetail.core.quantity import BadQuantity, format, parse  # noqa: A004
from dovetail.machines.names import (
    CREATOR,
    GPU_TYPE,
    INJECTING_CONTAINER,
    INJECTING_CONTAINER_ALIAS,
    UNIT_GATE,
)
from dovetail.machines.placement_rules import expressions_of, tolerations_of
from dovetail.machines.shapes import UnitShape
from dovetail.podfit.pod_sum import CPU, MEMORY, units

RawObject = dict[str, Any]
"""JSON as it came: fields may be missing or null."""

RESOURCES = (CPU, MEMORY, GPU_TYPE)
"""What a unit is made of: nothing of these may come from outside of it."""

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class InjectionRefused(Malformed):
    """A guest that cannot be one unit of its type."""

    def __init__(self, path: str, message: str) -> None:
        self.path, self.message = path, message
        super().__init__(f"{path}: {message}")


def inject(pod: RawObject, shape: UnitShape, group: str, creator: str) -> RawObject:
    """The pod with everything that makes it a guest. Raises InjectionRefused."""
    found = deepcopy(pod)
    spec = _child(found, "spec")
    if spec.get("nodeName"):
        raise InjectionRefused("spec.nodeName", "a guest goes where its unit is: leave it out")
    position = _target(found)
    _refuse_large_init_containers(spec, shape)
    _refuse_other_pod_level(spec, shape)
    _set_resources(spec, position, shape)
    _add_affinity(spec, expressions_of(shape, group))
    _add_missing(spec, "tolerations", tolerations_of(shape, group))
    _add_missing(spec, "schedulingGates", [{"name": UNIT_GATE}])
    _child(_child(found, "metadata"), "annotations")[CREATOR] = creator
    return found


def _child(parent: RawObject, key: str) -> RawObject:
    """The object of that name, made if it is missing or null."""
    if parent.get(key) is None:
        parent[key] = {}
    child: RawObject = parent[key]
    return child


def _items(parent: RawObject, key: str) -> list[RawObject]:
    return parent.get(key) or []


def _target(pod: RawObject) -> int:
    """The position of the container that gets what the unit has."""
    labels = (pod.get("metadata") or {}).get("labels") or {}
    containers = [each.get("name") for each in _items(pod["spec"], "containers")]
    for label in (INJECTING_CONTAINER, INJECTING_CONTAINER_ALIAS):
        if label in labels:
            if labels[label] not in containers:
                names = ", ".join(map(str, containers))
                raise InjectionRefused(
                    f"metadata.labels[{label}]",
                    f"the pod has no container {labels[label]!r}: it has {names}",
                )
            return containers.index(labels[label])
    if not containers:
        raise InjectionRefused("spec.containers", "the pod has no container")
    return 0


def _requests(owner: RawObject, path: str) -> dict[str, Fraction]:
    """Of a container or a pod, by resource of the unit: limits stand for requests left out."""
    resources = owner.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    found = {}
    for name in RESOURCES:
        field = "requests" if name in requests else "limits"
        written = requests.get(name, limits.get(name))
        if written is not None:
            found[name] = _quantity(written, f"{path}.resources.{field}[{name}]")
    return found


def _quantity(written: object, path: str) -> Fraction:
    try:
        return parse(str(written))
    except BadQuantity as error:
        raise InjectionRefused(path, str(error)) from error


def _overhead(spec: RawObject) -> dict[str, Fraction]:
    written = spec.get("overhead") or {}
    return {
        name: _quantity(written[name], f"spec.overhead[{name}]")
        for name in RESOURCES
        if name in written
    }


def _is_sidecar(init_container: RawObject) -> bool:
    return init_container.get("restartPolicy") == "Always"


Shares = list[tuple[str, dict[str, Fraction]]]
"""What takes something of the unit, and how much."""


def _sidecars(spec: RawObject) -> Shares:
    return [
        (f"sidecar {each.get('name')}", _requests(each, f"spec.initContainers[{position}]"))
        for position, each in enumerate(_items(spec, "initContainers"))
        if _is_sidecar(each)
    ]


def _others(spec: RawObject, position: int) -> Shares:
    """Everything beside the target that stays until the pod ends."""
    containers = [
        (f"container {each.get('name')}", _requests(each, f"spec.containers[{at}]"))
        for at, each in enumerate(_items(spec, "containers"))
        if at != position
    ]
    return [*containers, *_sidecars(spec), ("overhead", _overhead(spec))]


def _amount(name: str, shares: Shares) -> int:
    return units(name, sum((each.get(name, Fraction(0)) for _, each in shares), Fraction(0)))


def _sum_words(name: str, shares: Shares) -> str:
    """Such as `sidecar proxy 2 + overhead 500m = 2500m`."""
    parts = [f"{who} {_shown(name, each[name])}" for who, each in shares if each.get(name)]
    total = sum((each.get(name, Fraction(0)) for _, each in shares), Fraction(0))
    return f"{' + '.join(parts)} = {_shown(name, total)}" if len(parts) > 1 else "".join(parts)


def _shown(name: str, amount: Fraction) -> str:
    return format(amount, binary=name == MEMORY)


def _unit_words(name: str, shape: UnitShape) -> str:
    return f"a unit of {shape.name} has {shape.requests.get(name, '0')} {name}"


def _refuse_large_init_containers(spec: RawObject, shape: UnitShape) -> None:
    """An init container runs beside the sidecars before it, and before everything else."""
    beside: Shares = [("overhead", _overhead(spec))]
    for position, each in enumerate(_items(spec, "initContainers")):
        path = f"spec.initContainers[{position}]"
        share = (f"init container {each.get('name')}", _requests(each, path))
        if _is_sidecar(each):
            beside.append((f"sidecar {each.get('name')}", share[1]))
            continue
        together = [share, *beside]
        for name in RESOURCES:
            if share[1].get(name) and _amount(name, together) > shape.amounts.get(name, 0):
                raise InjectionRefused(
                    f"{path}.resources.requests[{name}]",
                    f"{_unit_words(name, shape)}, less than {_sum_words(name, together)}",
                )


def _refuse_other_pod_level(spec: RawObject, shape: UnitShape) -> None:
    """What a pod requests as a whole takes the place of the sum: it has to be the unit, too."""
    overhead: Shares = [("overhead", _overhead(spec))]
    resources = spec.get("resources") or {}
    for field in ("requests", "limits"):
        for name, written in (resources.get(field) or {}).items():
            if name not in RESOURCES:
                continue
            path = f"spec.resources.{field}[{name}]"
            left = shape.amounts.get(name, 0) - _amount(name, overhead)
            if units(name, _quantity(written, path)) != left:
                words = _sum_words(name, overhead)
                less = f" less {words}" if words else ""
                raise InjectionRefused(
                    path, f"{_unit_words(name, shape)}{less}, and the pod as a whole {written}"
                )


def _set_resources(spec: RawObject, position: int, shape: UnitShape) -> None:
    """Requests and limits of the target; resources that units are not made of stay as they are."""
    target = _items(spec, "containers")[position]
    others = _others(spec, position)
    resources = _child(target, "resources")
    requests, limits = _child(resources, "requests"), _child(resources, "limits")
    for name in RESOURCES:
        taken = _amount(name, others)
        left = shape.amounts.get(name, 0) - taken
        if left < 0 or (left == 0 and name in shape.amounts):
            raise InjectionRefused(
                f"spec.containers[{position}].resources.requests[{name}]",
                f"{_unit_words(name, shape)}, and nothing is left of it for container"
                f" {target.get('name')}: {_sum_words(name, others)}",
            )
        for written in (requests, limits):
            written.pop(name, None)
            if left:
                written[name] = shape.requests[name] if not taken else _written(name, left)


def _written(name: str, amount: int) -> str:
    return f"{amount}m" if name == CPU else str(amount)


def _add_affinity(spec: RawObject, expressions: list[RawObject]) -> None:
    """ANDs the expressions into every term: terms are ORed, one without them would be a way out.

    A term that demands nothing is met by no node, and stays so.
    """
    required = _child(_child(_child(spec, "affinity"), "nodeAffinity"), REQUIRED)
    if not required.get("nodeSelectorTerms"):
        required["nodeSelectorTerms"] = [{"matchExpressions": deepcopy(expressions)}]
        return
    for term in required["nodeSelectorTerms"]:
        if term.get("matchExpressions") or term.get("matchFields"):
            _add_missing(term, "matchExpressions", expressions)


def _add_missing(parent: RawObject, key: str, items: list[RawObject]) -> None:
    there = _items(parent, key)
    parent[key] = [*there, *(deepcopy(each) for each in items if each not in there)]


def patch_of(before: RawObject, after: RawObject) -> list[RawObject]:
    """The JSON patch (RFC 6902) from one to the other, which a webhook answers with."""
    return list(_operations(before, after, ""))


def _operations(before: Any, after: Any, path: str) -> Iterator[RawObject]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in [each for each in before if each not in after]:
            yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}
        for key, value in after.items():
            where = f"{path}/{_escaped(key)}"
            if key in before:
                yield from _operations(before[key], value, where)
            else:
                yield {"op": "add", "path": where, "value": value}
    elif isinstance(before, list) and isinstance(after, list) and len(before) <= len(after):
        for position, value in enumerate(after):
            if position < len(before):
                yield from _operations(before[position], value, f"{path}/{position}")
            else:
                yield {"op": "add", "path": f"{path}/-", "value": value}
    elif before != after:
        yield {"op": "replace", "path": path, "value": after}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
