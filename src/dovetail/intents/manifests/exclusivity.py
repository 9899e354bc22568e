"""QoS class of a pod, and whether its CPUs will be exclusive: the specification's recipe, checked.

Plans and status report it; it is never a filter. CPUs are exclusive for containers with whole CPUs
in a pod of class Guaranteed, on a node that pins: kubelet's static policy, or our agent. Every
container of the pod counts for the class, sidecars and init containers too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from dovetail.core.quantity import format  # noqa: A004
from dovetail.podfit.objects import Container, Pod, ResourceRequirements
from dovetail.podfit.pod_sum import (
    CPU,
    GUARANTEED,
    MEMORY,
    Quantities,
    is_sidecar,
    qos_class,
    quantities_of,
)


class CpuExclusivity(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod gets of the recipe for exclusive CPUs."""

    qos: str
    exclusive: Mapping[str, int]
    """CPUs of containers that have them for themselves on a node that pins, by container."""
    obstacles: tuple[str, ...]
    """Why others do not, in words; empty: all containers that ask for CPUs have them."""


def exclusivity_of(pod: Pod, pinning: Iterable[bool | None] = ()) -> CpuExclusivity:
    """`pod`: with its defaults, as `workloads` makes it. `pinning`: of the nodes that it goes to,
    whether they pin (`ClusterNode.pins_cpus`)."""
    everyone = (*pod.spec.init_containers, *pod.spec.containers)
    qos = _qos(pod, everyone)
    obstacles = []
    exclusive: dict[str, int] = {}
    if qos != GUARANTEED:
        obstacles += [f"the pod is {qos}, not {GUARANTEED}", *_why_not_guaranteed(everyone)]
    for each in _staying(pod):
        cpus = quantities_of(each.resources.requests).get(CPU)
        if not cpus:
            continue
        if cpus.denominator != 1:
            obstacles.append(f"container {each.name}: {format(cpus)} CPUs are no whole number")
        elif qos == GUARANTEED:
            exclusive[each.name] = cpus.numerator
    obstacles += _node_obstacles(pinning)
    return CpuExclusivity(qos=qos, exclusive=exclusive, obstacles=tuple(obstacles))


def _qos(pod: Pod, everyone: Iterable[Container]) -> str:
    whole = pod.spec.resources or ResourceRequirements()
    return qos_class(map(_pair, (each.resources for each in everyone)), _pair(whole))


def _pair(resources: ResourceRequirements) -> tuple[Quantities, Quantities]:
    return quantities_of(resources.requests), quantities_of(resources.limits)


def _staying(pod: Pod) -> tuple[Container, ...]:
    return (*filter(is_sidecar, pod.spec.init_containers), *pod.spec.containers)


def _why_not_guaranteed(containers: Iterable[Container]) -> Iterable[str]:
    for each in containers:
        requests, limits = _pair(each.resources)
        for name in (CPU, MEMORY):
            if not limits.get(name):
                yield f"container {each.name}: no {name} limit"
            elif requests.get(name) != limits[name]:
                yield (
                    f"container {each.name}: {name} request {format(requests[name])} is not its"
                    f" limit {format(limits[name])}"
                )


def _node_obstacles(pinning: Iterable[bool | None]) -> Iterable[str]:
    told = set(pinning)
    if False in told:
        yield "a node that it goes to does not pin CPUs"
    if None in told:
        yield "of a node that it goes to it is not known whether it pins CPUs"
