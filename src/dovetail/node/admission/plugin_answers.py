"""Validation of plugins' answers to an admission, before anybody relies on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite

from dovetail.node.admission.resource_requests import RequestedResource
from dovetail.node.common.cpus import CpuSet
from dovetail.node.common.pods import DeviceChoice
from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.hints.hint import BadHint, Hint, Hints, from_wire
from dovetail.node.state.pod_state import Allocations
from dovetail.node.wire.resource_plugin import (
    ListOfTopologyHints,
    ResourceAllocation,
    ResourceAllocationInfo,
)


def hints(
    found: Mapping[str, ListOfTopologyHints | None], request: RequestedResource, nodes: CpuSet
) -> Hints:
    """Under the plugin's own name of the resource, or else under the pod's."""
    name = request.resource if request.resource in found else request.original
    try:
        return _read(found.get(name), nodes)
    except BadHint as error:
        words = f"the plugin for {request.resource} answered wrongly: {error}"
        raise PluginError(request.resource, PluginFailure.GARBAGE, words) from None


def remembered_hints(info: ResourceAllocationInfo, nodes: CpuSet) -> Hints:
    """Of what a container has. None there, or no list: it did not care then either."""
    try:
        return _read(info.resource_hints, nodes) or None
    except BadHint:
        # The machine had other nodes then.
        return None


def _read(listed: ListOfTopologyHints | None, nodes: CpuSet) -> Hints:
    return None if listed is None else tuple(from_wire(each, nodes) for each in listed.hints)


def common_hints(lists: Iterable[Hints]) -> Hints:
    """Of a resource in several containers: nodes that do for each; preferred if by all."""
    found: dict[int | None, bool] | None = None
    for each in lists:
        if each is None:
            continue
        own = {hint.mask: hint.preferred for hint in sorted(each, key=lambda hint: hint.preferred)}
        if found is None:
            found = own
        else:
            found = {mask: found[mask] and own[mask] for mask in found if mask in own}
    return None if found is None else tuple(Hint(mask, liked) for mask, liked in found.items())


def check_chosen(
    given: Allocations, request: RequestedResource, chosen: Iterable[DeviceChoice]
) -> None:
    """Devices that the scheduler chose are given, and no others. Raises PluginError."""
    wanted = {each.id for each in chosen}
    told = {id_ for info in given.values() for id_ in info.device_ids}
    if wanted and wanted != told:
        gave = ", ".join(sorted(told)) or "does not say which it gave"
        words = (
            f"the plugin for {request.resource} was asked for {', '.join(sorted(wanted))}, which "
            f"the pod was given by class, and {'gave ' if told else ''}{gave}"
        )
        raise PluginError(request.resource, PluginFailure.GARBAGE, words)


def allocations(
    found: ResourceAllocation | None, request: RequestedResource, *, optional: bool
) -> Allocations:
    """The resource and what accompanies it, by the plugin's names; nothing only if `optional`."""
    given = {} if found is None else found.resource_allocation
    if not given and optional:
        return {}
    if request.resource not in given and request.original not in given:
        said = f"it allocated {', '.join(sorted(given))}" if given else "it allocated nothing"
        words = f"the plugin for {request.resource} was asked to allocate it, and {said}"
        raise PluginError(request.resource, PluginFailure.GARBAGE, words)
    checked = {}
    for name in sorted(given):
        quantity = given[name].allocated_quantity
        if not isfinite(quantity) or quantity < 0:
            words = (
                f"the plugin for {request.resource} allocated a quantity of {quantity} of {name}"
            )
            raise PluginError(request.resource, PluginFailure.GARBAGE, words)
        alias = name == request.original and request.resource not in given
        checked[request.resource if alias else name] = given[name]
    return checked
