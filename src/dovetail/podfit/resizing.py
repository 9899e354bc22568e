"""In-place pod resize (KEP-1287): until the kubelet has done it, a pod counts as the larger.

A container requests something, was allocated something and has something; they differ while it
grows or shrinks. A resize that the node can never do (Infeasible) counts for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dovetail.podfit.objects import Container, ContainerStatus, Pod, ResourceRequirements
from dovetail.podfit.pod_sum import WrittenQuantities, is_sidecar, quantity_of

PENDING, INFEASIBLE = "PodResizePending", "Infeasible"

ResourcesInUse = tuple[tuple[Container, ...], tuple[Container, ...], ResourceRequirements | None]


def resources_in_use(pod: Pod) -> ResourcesInUse:
    """Its containers, init containers and resources as a whole, as they count. Raises
    BadQuantity."""
    spec, status = pod.spec, pod.status
    if not (status.container_statuses or status.init_container_statuses or status.resources):
        return spec.containers, spec.init_containers, spec.resources
    never = any(each.type == PENDING and each.reason == INFEASIBLE for each in status.conditions)
    statuses = {
        each.name: each for each in (*status.container_statuses, *status.init_container_statuses)
    }
    whole = spec.resources
    if whole is not None and status.resources is not None:
        # The status also has the sum of what only containers ask for.
        has = [
            {name: amount for name, amount in each.items() if name in whole.requests}
            for each in (status.resources.requests, status.allocated_resources)
        ]
        whole = larger_resources(whole, has, never=never)
    return (
        tuple(
            container_in_use(one, statuses.get(one.name), never=never) for one in spec.containers
        ),
        tuple(
            # Only sidecars are resized: the others run once, as they are.
            container_in_use(one, statuses.get(one.name), never=never) if is_sidecar(one) else one
            for one in spec.init_containers
        ),
        whole,
    )


def container_in_use(
    container: Container, status: ContainerStatus | None, *, never: bool
) -> Container:
    if status is None or status.resources is None:
        return container
    has = (status.resources.requests, status.allocated_resources)
    resources = larger_resources(container.resources, has, never=never)
    if resources is container.resources:
        return container
    return msgspec.structs.replace(container, resources=resources)


def larger_resources(
    requested: ResourceRequirements, has: Sequence[WrittenQuantities], *, never: bool
) -> ResourceRequirements:
    """The same object where nothing differs, as it nearly always is."""
    if all(each == requested.requests for each in has):
        return requested
    found: dict[str, str | int | float] = {}
    for each in has if never else (requested.requests, *has):
        for name, amount in each.items():
            if name not in found or quantity_of(str(amount)) > quantity_of(str(found[name])):
                found[name] = amount
    # What nobody but the pod speaks of is not being resized.
    requests = {**requested.requests, **found}
    return requested if requests == requested.requests else ResourceRequirements(requests=requests)
