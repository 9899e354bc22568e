"""Guests on a real cluster: each takes over a unit on a full node, one by one and many at once.

API server, scheduler, StatefulSet controller and operator are the real ones, and share the machine;
kwok plays the kubelets. All room of the pools is held by sleepers, so that every sale has to vacate
a unit. Beside it, in the same run: the reactive scheme, and as many plain pods on empty nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from tests.kube.machines.bed import Bed, machine_bed, simple_spec

from dovetail.machines.names import GUEST, role_labels

from ..report import progress
from . import reactive
from .pod_times import PodTimes

HAND_OVERS = 50
REACTIVE = 5
"""Guests of the reactive scheme: all at once, which is what it does best."""
SOLD, POOL = 200, 50
"""Guests at once, and nodes that they come to."""
CPU, MEMORY = 2, 4
"""Of a unit: cores, and GiB."""
READY_SECONDS = 120.0
PLAIN = {"bench/pool": "plain"}


class HandOvers(msgspec.Struct):
    """Seconds from creation to running."""

    ours: list[float]
    reactive: list[float]


class Sold(msgspec.Struct):
    """Pods per second, all of them created at once."""

    guests: int
    nodes: int
    created: float
    let_go: float
    running: float
    plain: float
    """Plain pods on empty nodes, running."""


@contextmanager
def running_bed() -> Iterator[Bed]:
    with TemporaryDirectory() as directory, machine_bed(Path(directory), operator=False) as bed:
        # Tests have a leader replaced within two seconds; here it leads as long as elsewhere.
        bed.start_operator("--lease-seconds", "15")
        yield bed


async def hand_overs(bed: Bed, count: int = HAND_OVERS, beside: int = REACTIVE) -> HandOvers:
    """One after the other, on nodes with as many units as there are guests."""
    fill_pool(bed, "single", nodes=max(count // 2, 1), units=count)
    ours = []
    async with PodTimes.watched(str(bed.cluster.kubeconfig), "lab") as times:
        for number in range(count):
            (name,) = await times.run([guest("single", number)])
            ours.append(times.hand_over(name))
    progress(f"the reactive scheme: {beside} guests")
    found = HandOvers(ours, await reactive.measure(bed.cluster, beside))
    drop_guests(bed, "single")
    return found


async def sold_at_once(bed: Bed, count: int = SOLD, nodes: int = POOL) -> Sold:
    fill_pool(bed, "many", nodes=nodes, units=count)
    cpu, memory = amounts(count // nodes)
    bed.cluster.add_nodes(nodes, prefix="plain", labels=PLAIN, cpu=cpu, memory=memory)
    bed.cluster.make_namespace("plain")
    kubeconfig = str(bed.cluster.kubeconfig)
    async with PodTimes.watched(kubeconfig, "plain") as times:
        names = await times.run(plain_pod(number) for number in range(count))
        plain = times.rate(names, times.running)
    async with PodTimes.watched(kubeconfig, "lab") as times:
        names = await times.run(guest("many", number) for number in range(count))
        found = Sold(
            guests=count,
            nodes=nodes,
            created=times.rate(names, times.asked),
            let_go=times.rate(names, times.let_go),
            running=times.rate(names, times.running),
            plain=plain,
        )
    drop_guests(bed, "many")
    return found


def fill_pool(bed: Bed, group: str, *, nodes: int, units: int) -> None:
    """A Machine whose stock leaves no room on its nodes."""
    progress(f"{nodes} nodes, {units} units held")
    names = [f"{group}-{number}" for number in range(nodes)]
    cpu, memory = amounts(units // nodes)
    bed.cluster.add_nodes(nodes, prefix=group, cpu=cpu, memory=memory)
    bed.create_machine(simple_spec(names, units), group)
    bed.await_that(lambda: held(bed, group) == units, "stock", READY_SECONDS)


def amounts(units: int) -> tuple[str, str]:
    """CPU and memory of a node that holds so many units, and nothing else."""
    return str(CPU * units), f"{MEMORY * units}Gi"


def held(bed: Bed, group: str) -> float:
    found = bed.usage("small", group)
    return found["reserved"] if found else 0


def drop_guests(bed: Bed, group: str) -> None:
    for name in bed.pods():
        bed.drop_pod(name)
    bed.drop_machine(group)


def guest(group: str, number: int) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"{group}-{number}",
            "labels": {**role_labels(group, "small", GUEST), "app": f"{group}-{number}"},
        },
        "spec": {"containers": [{"name": "main", "image": "train"}]},
    }


def plain_pod(number: int) -> dict[str, Any]:
    """What a guest is after injection, less the gate."""
    cpu, memory = amounts(1)
    unit = {"cpu": cpu, "memory": memory}
    resources = {"requests": unit, "limits": unit}
    return {
        "metadata": {"name": f"plain-{number}"},
        "spec": {
            "nodeSelector": PLAIN,
            "containers": [{"name": "main", "image": "train", "resources": resources}],
        },
    }


def percentile(seconds: Sequence[float], share: int) -> float:
    ordered = sorted(seconds)
    return ordered[min(len(ordered) - 1, len(ordered) * share // 100)]
