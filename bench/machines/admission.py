"""Creating a guest, which admission makes one: beside a plain pod, as types come to be sold."""

from __future__ import annotations

import msgspec
from tests.kube.machines.bed import Bed, simple_spec

from dovetail.kube.api.client import connect
from dovetail.podfit.objects import Pod

from ..agent.times import Times
from ..report import progress
from .guests import guest, plain_pod

TYPES = (1, 20, 60)
PODS = 50
SHAPES = "/apis/dovetail.dev/v1alpha1/machineshapes"


class Created(msgspec.Struct):
    types: int
    guests: Times
    plain: Times


async def measure(bed: Bed, pods: int = PODS) -> list[Created]:
    """The first type is the guests'; nobody serves the others, but they are sold all the same."""
    bed.cluster.add_nodes(1, prefix="admission")
    found = []
    for types in TYPES:
        progress(f"{types} types")
        spec = simple_spec(["admission-0"], 1)
        unit = spec["machineTypes"][0]
        spec["machineTypes"] += [{**unit, "name": f"type-{n}"} for n in range(1, types)]
        bed.create_machine(spec, "admission")
        await_shapes(bed, types)
        bed.await_ready("admission")
        found.append(await created(bed, types, pods))
        bed.drop_machine("admission")
        await_shapes(bed, 0)
    return found


def await_shapes(bed: Bed, count: int) -> None:
    bed.await_that(lambda: len(bed.get(SHAPES)["items"]) == count, f"{count} shapes")


async def created(bed: Bed, types: int, pods: int) -> Created:
    found = Created(types, Times(), Times())
    async with connect(str(bed.cluster.kubeconfig)) as api:
        for number in range(pods):
            with found.plain.one():
                await api.create(Pod, plain_pod(number), namespace="default")
            with found.guests.one():
                await api.create(Pod, guest("admission", number), namespace="lab")
    for number in range(pods):
        bed.drop_pod(f"plain-{number}", "default")
        bed.drop_pod(f"admission-{number}")
    return found
