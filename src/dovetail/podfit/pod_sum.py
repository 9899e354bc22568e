"""Pod sum and QoS class: what a pod requests of its node by Kubernetes' rules, in exact numbers.

The one place with the formula (KEP-753, `resourcehelper.PodRequests` in Kubernetes): `pod_request`
fills in amounts for nodes from it, kube/classes devices of device classes, the node agent the
requests that it sends to plugins. Containers run together, so their requests add up. Init
containers run one after the other before them, each beside the sidecars (init containers that go
on) started before it; what counts is the largest request at any time. Requests of the whole pod,
where it has some, take the place of the sum; overhead comes on top.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Generic, TypeVar

import msgspec

from dovetail.core.quantity import parse
from dovetail.podfit.objects import Container, ResourceRequirements

CLASS_PREFIX = "resourceclass.dovetail.dev/"
"""Requests of device classes: counted by `dovetail.devices`, not here."""

CPU, MEMORY, STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"
HUGE_PAGES = "hugepages-"

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
"""QoS classes."""

ENDED_PHASES = ("Succeeded", "Failed")
"""Phases in which a pod holds nothing any more."""

MOST_UNITS_COUNTED = 2**62
"""No amount is taken for more than this: nobody has it, and sums of two fit 64 bits."""

NON_ZERO_DEFAULTS: Mapping[str, Fraction] = {CPU: Fraction(1, 10), MEMORY: Fraction(200 * 2**20)}
"""What kube-scheduler's scores take a container to request that does not say."""

WrittenQuantities = Mapping[str, str | int | float]
Quantities = Mapping[str, Fraction]
N = TypeVar("N", int, Fraction)


class PodSum(msgspec.Struct, Generic[N], frozen=True):
    """The sum over a pod's containers, by resource."""

    staying: dict[str, N]
    """Of containers and sidecars, which run until the pod ends."""
    peaks: dict[str, tuple[N, int]]
    """The most at any time while init containers run, and the index of the first that needs it."""

    def total(self) -> dict[str, N]:
        """The largest request at any time."""
        found = dict(self.staying)
        for name, (peak, _) in self.peaks.items():
            found[name] = max(found.get(name, peak), peak)
        return found


def pod_sum(steps: Iterable[tuple[Mapping[str, N], bool]]) -> PodSum[N]:
    """Of containers in the order in which they start: what each requests, and whether it stays."""
    staying: dict[str, N] = {}
    peaks: dict[str, tuple[N, int]] = {}
    for index, (requests, stays) in enumerate(steps):
        if stays:
            add_to(staying, requests)
            continue
        level = dict(staying)
        add_to(level, requests)
        for name, amount in level.items():
            if name not in peaks or amount > peaks[name][0]:
                peaks[name] = (amount, index)
    return PodSum(staying, peaks)


def add_to(total: dict[str, N], more: Mapping[str, N]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def is_sidecar(init_container: Container) -> bool:
    return init_container.restart_policy == "Always"


def pod_requests(
    containers: Iterable[Container],
    init_containers: Iterable[Container],
    pod: ResourceRequirements | None,
    overhead: WrittenQuantities,
    defaults: Quantities | None = None,
) -> Quantities:
    """`defaults` stand for what a container does not request. Raises BadQuantity."""
    total = pod_sum(
        (
            *((requests_of(each, defaults), is_sidecar(each)) for each in init_containers),
            *((requests_of(each, defaults), True) for each in containers),
        )
    ).total()
    if pod is not None:
        whole = quantities_of(pod.requests)
        total |= {name: amount for name, amount in whole.items() if is_pod_level(name)}
    add_to(total, quantities_of(overhead))
    return total


def requests_of(container: Container, defaults: Quantities | None) -> Quantities:
    return {**(defaults or {}), **quantities_of(container.resources.requests)}


def is_pod_level(name: str) -> bool:
    """Whether a pod can request the resource as a whole."""
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES)


def qos_class(
    containers: Iterable[tuple[Quantities, Quantities]], pod: tuple[Quantities, Quantities]
) -> str:
    """The QoS class by requests and limits: the pod's own where it has some, else containers'.

    Only CPU and memory count. A container without either limit makes no pod Guaranteed.
    """
    pairs = [pod] if any(pod) else list(containers)
    requests = [_compute_resources(each) for each, _ in pairs]
    limits = [_compute_resources(each) for _, each in pairs]
    if not any(requests) and not any(limits):
        return BEST_EFFORT
    if all(len(each) == 2 for each in limits) and _sum(requests) == _sum(limits):
        return GUARANTEED
    return BURSTABLE


def _compute_resources(quantities: Quantities) -> Quantities:
    return {name: quantities[name] for name in (CPU, MEMORY) if quantities.get(name)}


def _sum(all_quantities: Iterable[Quantities]) -> Quantities:
    total: dict[str, Fraction] = {}
    for each in all_quantities:
        add_to(total, each)
    return total


def quantities_of(written: WrittenQuantities) -> dict[str, Fraction]:
    return {name: quantity_of(str(text)) for name, text in written.items()}


@lru_cache(maxsize=4096)
def quantity_of(text: str) -> Fraction:
    return parse(text)


def is_counted(name: str) -> bool:
    """Whether nodes are asked for it: what kube-scheduler looks at, less device classes."""
    if "/" in name:
        return not name.startswith(CLASS_PREFIX)
    return name in (CPU, MEMORY, STORAGE) or name.startswith((HUGE_PAGES, "attachable-volumes-"))


def units(name: str, quantity: Fraction) -> int:
    """Whole units, rounded up: thousandths of a CPU, bytes, pieces."""
    return min(ceil(quantity * 1000 if name == CPU else quantity), MOST_UNITS_COUNTED)


def amounts_of(requests: Quantities) -> tuple[tuple[str, int], ...]:
    """Units of a node, a place for a pod included; nothing of what comes to nothing."""
    found = {name: units(name, one) for name, one in sorted(requests.items()) if is_counted(name)}
    return ((PODS, 1), *((name, amount) for name, amount in found.items() if amount > 0))


def allocatable_of(written: WrittenQuantities) -> dict[str, int]:
    """Units that a node has to give."""
    return {
        name: units(name, amount)
        for name, amount in quantities_of(written).items()
        if is_counted(name) or name == PODS
    }
