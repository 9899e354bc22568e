"""Requests of a container or pod for plugins' resources, worked out from its specification."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import msgspec

from dovetail.node.common.pod_identity import PodIdentity
from dovetail.node.common.pods import Amounts, ContainerSpec, DeviceChoice, Pod
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.common.reasons import BAD_REQUEST
from dovetail.node.wire.resource_plugin import (
    ChosenDevice,
    ContainerType,
    PodResourceRequest,
    ResourceRequest,
    TopologyHint,
)
from dovetail.podfit.pod_sum import pod_sum

PRECISION = 1000


class RequestedResource(NamedTuple):
    resource: str
    """As its plugin calls it."""
    original: str
    """As the pod does."""
    amount: Fraction
    limit: Fraction | None
    besides: tuple[RequestedResource, ...] = ()
    """Of resources that the same plugin counts together with this one, as huge pages."""

    @property
    def quantities(self) -> dict[str, float]:
        """As the pod calls them. One alone, unless the plugin counts others besides: Katalyst's
        plugins refuse more, and go by the name to tell CPUs from thousandths of them."""
        return {each.original: rounded(each.amount) for each in (self, *self.besides)}

    @property
    def limits(self) -> dict[str, float]:
        return {
            each.original: rounded(each.limit)
            for each in (self, *self.besides)
            if each.limit is not None
        }

    @property
    def names(self) -> dict[str, str]:
        """As the plugin calls what the pod calls otherwise."""
        return {
            each.original: each.resource
            for each in (self, *self.besides)
            if each.original != each.resource
        }


def rounded(amount: Fraction) -> float:
    """To a thousandth, upwards as Kubernetes does."""
    return float(Fraction(ceil(amount * PRECISION), PRECISION))


def requested_resources(
    who: str, requests: Amounts, limits: Amounts, names: Mapping[str, str]
) -> tuple[RequestedResource, ...]:
    """In the order of resources. A request of nothing is no request. Raises AdmissionRejected."""
    found: dict[str, RequestedResource] = {}
    for original, amount in sorted(requests.items()):
        if amount < 0:
            raise AdmissionRejected(
                BAD_REQUEST, f"{who} requests {amount} of {original}, less than nothing"
            )
        if not amount:
            continue
        resource = names.get(original, original)
        if resource in found:
            raise AdmissionRejected(
                BAD_REQUEST,
                f"{who} requests both {found[resource].original} and {original}, which are one"
                f" resource here: {resource}. Request one of them",
            )
        found[resource] = RequestedResource(resource, original, amount, limits.get(original))
    return tuple(found[each] for each in sorted(found))


def together(
    requests: Iterable[RequestedResource], counted: Callable[[str], Collection[str]]
) -> tuple[RequestedResource, ...]:
    """Requests of resources that the plugin of another has `counted` go along with that one's."""
    requests = tuple(requests)
    leading = {besides: each.resource for each in requests for besides in counted(each.resource)}

    def led(by: RequestedResource) -> tuple[RequestedResource, ...]:
        return tuple(each for each in requests if leading.get(each.resource) == by.resource)

    return tuple(
        each._replace(besides=led(each)) for each in requests if each.resource not in leading
    )


def of_container(
    container: ContainerSpec, names: Mapping[str, str]
) -> tuple[RequestedResource, ...]:
    who = f"container {container.name}"
    return requested_resources(who, container.requests, container.limits, names)


def of_pod(pod: Pod, names: Mapping[str, str]) -> tuple[RequestedResource, ...]:
    return requested_resources("the pod", pod_requests_of(pod), pod_limits_of(pod), names)


def is_pod_level(request: RequestedResource, pod: Pod) -> bool:
    """Whether the pod itself asks for it, or for something that is counted with it."""
    return any(each.original in pod.requests for each in (request, *request.besides))


def pod_requests_of(pod: Pod) -> Amounts:
    """Kubernetes' pod sum of requests; what the pod itself says wins."""
    steps = (
        (each.requests, stays(each))
        for each in pod.containers
        if each.type is not ContainerType.EPHEMERAL
    )
    return {**pod_sum(steps).total(), **pod.requests}


def pod_limits_of(pod: Pod) -> Amounts:
    """The sum of limits, of resources that all containers limit; what the pod itself says wins."""
    staying = [each for each in pod.containers if stays(each)]
    common = set.intersection(*(set(each.limits) for each in staying)) if staying else set()
    sums = {name: sum((each.limits[name] for each in staying), Fraction(0)) for name in common}
    return {**sums, **pod.limits}


def stays(container: ContainerSpec) -> bool:
    if container.type is ContainerType.EPHEMERAL:
        return False
    return container.restartable or container.type is not ContainerType.INIT


def in_order(containers: Iterable[ContainerSpec]) -> list[ContainerSpec]:
    """Init containers first, as they start; then the main one, as sidecars may go where it is.

    Ephemeral ones come when they are created.
    """
    order = {ContainerType.INIT: 0, ContainerType.MAIN: 1, ContainerType.SIDECAR: 2}
    chosen = [each for each in containers if each.type in order]
    return sorted(chosen, key=lambda each: 0 if each.restartable else order[each.type])


def container_question(
    pod: Pod,
    who: PodIdentity,
    container: ContainerSpec,
    request: RequestedResource,
    hint: TopologyHint | None = None,
) -> ResourceRequest:
    return ResourceRequest(
        pod_uid=pod.uid,
        pod_namespace=pod.namespace,
        pod_name=pod.name,
        container_name=container.name,
        container_type=container.type,
        container_index=container.index,
        pod_role=who.role,
        pod_type=who.type,
        resource_name=request.resource,
        hint=hint,
        resource_requests=request.quantities,
        labels=dict(pod.labels),
        annotations=dict(pod.annotations),
        native_qos_class=pod.qos_class,
        runtime_class=pod.runtime_class,
        limits=request.limits,
        resource_names=request.names,
        chosen_devices=_written_choices(chosen_of(container, request)),
    )


def chosen_of(container: ContainerSpec, request: RequestedResource) -> tuple[DeviceChoice, ...]:
    """The devices that are meant, if the scheduler chose some."""
    requested = (each.original for each in (request, *request.besides))
    return tuple(each for name in requested for each in container.chosen.get(name, ()))


def _written_choices(choices: Iterable[DeviceChoice]) -> tuple[ChosenDevice, ...]:
    return tuple(
        ChosenDevice(resource=each.resource, id=each.id, units=each.units) for each in choices
    )


def _chosen_of_pod(pod: Pod, request: RequestedResource) -> tuple[DeviceChoice, ...]:
    """Each once: init containers use what others have later."""
    found: dict[tuple[str, str], DeviceChoice] = {}
    for container in sorted(pod.containers, key=stays):
        for each in chosen_of(container, request):
            known = found.get((each.resource, each.id))
            more = known.units if known and stays(container) else 0
            units = max(each.units + more, known.units if known else 0)
            found[each.resource, each.id] = msgspec.structs.replace(each, units=units)
    return tuple(found[key] for key in sorted(found))


def pod_question(
    pod: Pod, who: PodIdentity, request: RequestedResource, hint: TopologyHint | None = None
) -> PodResourceRequest:
    return PodResourceRequest(
        pod_uid=pod.uid,
        pod_namespace=pod.namespace,
        pod_name=pod.name,
        pod_role=who.role,
        pod_type=who.type,
        resource_name=request.resource,
        hint=hint,
        resource_requests=request.quantities,
        labels=dict(pod.labels),
        annotations=dict(pod.annotations),
        native_qos_class=pod.qos_class,
        limits=request.limits,
        resource_names=request.names,
        pod_level=is_pod_level(request, pod),
        chosen_devices=_written_choices(_chosen_of_pod(pod, request)),
    )
