"""What a pod asks of a node: Kubernetes' formula over its containers, in exact integers.

Containers run together, so their requests add up. Init containers run one after the other before
them, each beside the sidecars (init containers that go on) started before it; what counts is the
largest need at any time. Requests of the whole pod, where it has some, take the place of the sum;
overhead comes on top.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import ceil

from dovetail.core.quantity import parse
from dovetail.podfit.objects import Container, Resources

CLASS_PREFIX = "resourceclass.dovetail.dev/"
"""Requests of resource classes: counted by devices, not here."""

CPU, MEMORY, STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"
HUGE_PAGES = "hugepages-"

FARTHEST = 2**62
"""No amount is taken for more than this: nobody has it, and sums of two fit 64 bits."""

TYPICAL: Mapping[str, Fraction] = {CPU: Fraction(1, 10), MEMORY: Fraction(200 * 2**20)}
"""What kube-scheduler's scores take a container to need that does not say."""

Written = Mapping[str, str | int | float]
Sizes = dict[str, Fraction]


def pod_requests(
    containers: Iterable[Container],
    inits: Iterable[Container],
    pod: Resources | None,
    overhead: Written,
    unsaid: Mapping[str, Fraction] | None = None,
) -> Sizes:
    """`unsaid` stands for what a container does not ask for."""
    total: Sizes = {}
    for container in containers:
        add(total, asked(container, unsaid))
    sidecars: Sizes = {}
    peak: Sizes = {}
    for container in inits:
        needs = asked(container, unsaid)
        if container.restart_policy == "Always":
            add(total, needs)
            add(sidecars, needs)
            continue
        add(needs, sidecars)
        for name, size in needs.items():
            peak[name] = max(peak.get(name, size), size)
    for name, size in peak.items():
        total[name] = max(total.get(name, size), size)
    if pod is not None:
        total |= {name: size for name, size in sizes(pod.requests).items() if of_whole_pod(name)}
    add(total, sizes(overhead))
    return total


def of_whole_pod(name: str) -> bool:
    """Whether a pod can ask for it as a whole."""
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES)


def asked(container: Container, unsaid: Mapping[str, Fraction] | None) -> Sizes:
    return {**(unsaid or {}), **sizes(container.resources.requests)}


def add(total: Sizes, more: Mapping[str, Fraction]) -> None:
    for name, size in more.items():
        total[name] = total.get(name, Fraction()) + size


def sizes(written: Written) -> Sizes:
    return {name: size(str(text)) for name, text in written.items()}


@lru_cache(maxsize=4096)
def size(text: str) -> Fraction:
    return parse(text)


def counted(name: str) -> bool:
    """Whether nodes are asked for it: what kube-scheduler looks at, less resource classes."""
    if "/" in name:
        return not name.startswith(CLASS_PREFIX)
    return name in (CPU, MEMORY, STORAGE) or name.startswith((HUGE_PAGES, "attachable-volumes-"))


def units(name: str, size: Fraction) -> int:
    """Whole units, rounded up: thousandths of a CPU, bytes, pieces."""
    return min(ceil(size * 1000 if name == CPU else size), FARTHEST)


def amounts(total: Mapping[str, Fraction]) -> tuple[tuple[str, int], ...]:
    """What is to be had of a node, a place for a pod included; nothing of what comes to nothing."""
    found = {name: units(name, size) for name, size in sorted(total.items()) if counted(name)}
    return ((PODS, 1), *((name, amount) for name, amount in found.items() if amount > 0))


def allocatable(written: Written) -> dict[str, int]:
    """What a node has to give."""
    return {
        name: units(name, amount)
        for name, amount in sizes(written).items()
        if counted(name) or name == PODS
    }
