"""openb with NUMA: every node of eight GPUs becomes two halves, tasks keep to one if they can.

A half has four of the GPUs and half of the CPU and memory. A task first asks for one half (or a
node that is not split); if there is none it takes what it needs from two, in equal parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import msgspec

from dovetail.core.fleet import FleetPlan
from dovetail.core.request import Affinity, Group, Request
from dovetail.simulate import openb
from dovetail.simulate.openb import CPU, GPU, MEMORY, MOST_PODS, PODS, WHOLE, Shape
from dovetail.simulate.workload import Task, Workload

SPLIT = 8
"""GPUs of the nodes that are split."""

HOME, OTHER = "_HOME", "_OTHER"


def read(nodes: Path, tasks: Path) -> Workload:
    return Workload(
        name=openb.workload_name(tasks), fleet=fleet(nodes), tasks=tuple(tasks_in(tasks))
    )


def fleet(path: Path) -> FleetPlan:
    plan = FleetPlan()
    for where, row in openb.lines(path, openb.NODE_COLUMNS):
        number = openb.reader(where, row)
        name, cpu, memory, gpus = (
            row["sn"],
            number("cpu_milli"),
            number("memory_mib"),
            number("gpu"),
        )
        if gpus != SPLIT:
            amounts = {CPU: cpu, MEMORY: memory, PODS: MOST_PODS}
            openb.add_node(plan, name, amounts, gpus, row["model"])
            continue
        root = openb.add(plan, name, None, {PODS: MOST_PODS})
        for half in range(2):
            numa = f"{name}_numa{half}"
            above = openb.add(plan, numa, root, {CPU: cpu // 2, MEMORY: memory // 2})
            for gpu in range(SPLIT // 2):
                traits = [openb.trait(row["model"])]
                openb.add(plan, f"{numa}_gpu{gpu}", above, {GPU: WHOLE}, traits)
    return plan


def tasks_in(path: Path) -> Iterator[Task]:
    rows = openb.lines(path, openb.TASK_COLUMNS)
    for (where, row), task in zip(rows, openb.tasks_in(path), strict=True):
        shape = openb.shape_of(where, row)
        yield msgspec.structs.replace(task, requests=(together(shape), apart(shape)))


@lru_cache(maxsize=4096)
def together(shape: Shape) -> Request:
    gpus = openb.gpus(shape)
    home = Group(suffix=HOME, resources=resources(*shape[:2]))
    return tied(((home, gpus),))


@lru_cache(maxsize=4096)
def apart(shape: Shape) -> Request:
    cpu, memory, *_ = shape
    gpus = openb.gpus(shape)
    middle = (len(gpus) + 1) // 2
    home = Group(suffix=HOME, resources=resources(cpu - cpu // 2, memory - memory // 2))
    other = Group(suffix=OTHER, resources=resources(cpu // 2, memory // 2))
    return tied(((home, gpus[:middle]), (other, gpus[middle:])))


def resources(cpu: int, memory: int) -> dict[str, int]:
    return {name: amount for name, amount in ((CPU, cpu), (MEMORY, memory)) if amount}


def tied(parts: tuple[tuple[Group, list[Group]], ...]) -> Request:
    """A request for parts, each of which lies together with its GPUs."""
    gpus = [gpu for _, mine in parts for gpu in mine]
    return Request(
        groups=(Group(resources={PODS: 1}), *(home for home, _ in parts), *gpus),
        isolated=frozenset(gpu.suffix for gpu in gpus),
        affinities=tuple(
            Affinity(frozenset({home.suffix, *(gpu.suffix for gpu in mine)}))
            for home, mine in parts
            if mine
        ),
    )
