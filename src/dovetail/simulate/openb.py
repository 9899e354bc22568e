"""Reads the openb workload: GPU nodes and tasks of a production cluster, as CSV.

A node is a root with milli-CPU, memory and places for pods, and a child per GPU with 1000 units and
its model as a trait. Typical demand leaves memory out, as in the publication of the data.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from dovetail.core.fleet import FleetPlan, PlannedProvider, plain_inventory
from dovetail.core.request import Group, Request
from dovetail.simulate.errors import BadWorkload
from dovetail.simulate.workload import Task, Workload

CPU, MEMORY, PODS, GPU = "CUSTOM_MILLICPU", "MEMORY_MB", "CUSTOM_PODS", "CUSTOM_MILLIGPU"
MODEL = "CUSTOM_GPU_"
MOST_PODS = 1001
WHOLE = 1000

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
TASK_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")

Row = Mapping[str, str]
Shape = tuple[int, int, int, int, str]
"""milli-CPU, MiB, GPUs, thousandths of each, models accepted"""


def read(nodes: Path, tasks: Path) -> Workload:
    return Workload(name=workload_name(tasks), fleet=fleet(nodes), tasks=tuple(tasks_in(tasks)))


def workload_name(tasks: Path) -> str:
    return tasks.stem.removeprefix("openb_pod_list_")


def fleet(path: Path) -> FleetPlan:
    plan = FleetPlan()
    for where, row in lines(path, NODE_COLUMNS):
        number = reader(where, row)
        amounts = {CPU: number("cpu_milli"), MEMORY: number("memory_mib"), PODS: MOST_PODS}
        add_node(plan, row["sn"], amounts, number("gpu"), row["model"])
    return plan


def add_node(plan: FleetPlan, name: str, amounts: Mapping[str, int], gpus: int, model: str) -> None:
    root = add(plan, name, None, amounts)
    for gpu in range(gpus):
        add(plan, f"{name}_gpu{gpu}", root, {GPU: WHOLE}, traits=[trait(model)])


def add(
    plan: FleetPlan,
    name: str,
    parent: int | None,
    amounts: Mapping[str, int],
    traits: list[str] | None = None,
) -> int:
    """The position of the new provider."""
    position = len(plan.providers)
    plan.providers.append(
        PlannedProvider(
            name=name,
            uuid=f"00000000-0000-4000-8000-{position:012x}",
            parent=parent,
            root=position if parent is None else plan.providers[parent].root,
            traits=traits or [],
            aggregates=[],
            inventories={each: plain_inventory(n) for each, n in amounts.items() if n},
            used={},
        )
    )
    return position


def tasks_in(path: Path) -> Iterator[Task]:
    for where, row in lines(path, TASK_COLUMNS):
        shape = shape_of(where, row)
        arrives, ends = times_of(where, row)
        yield Task(
            name=row["name"],
            requests=(request_of(shape),),
            typical=typical(shape),
            arrives=arrives,
            ends=ends,
        )


def times_of(where: str, row: Row) -> tuple[int | None, int | None]:
    if not row.get("creation_time") or not row.get("deletion_time"):
        return None, None
    number = reader(where, row)
    arrives, ends = number("creation_time"), number("deletion_time")
    if ends < arrives:
        raise BadWorkload(where, f"{row['name']} is deleted before it is created")
    return arrives, ends


def shape_of(where: str, row: Row) -> Shape:
    number = reader(where, row)
    gpus, milli = number("num_gpu"), number("gpu_milli")
    if gpus and not 1 <= milli <= WHOLE:
        raise BadWorkload(where, f"gpu_milli is from 1 to {WHOLE} of each GPU, not {milli}")
    models = (row.get("gpu_spec") or "") if gpus else ""
    return number("cpu_milli"), number("memory_mib"), gpus, milli if gpus else 0, models


@lru_cache(maxsize=4096)
def request_of(shape: Shape) -> Request:
    cpu, memory, *_ = shape
    return request({CPU: cpu, MEMORY: memory, PODS: 1}, shape)


@lru_cache(maxsize=4096)
def typical(shape: Shape) -> Request:
    return request({CPU: shape[0]}, shape)


def request(amounts: Mapping[str, int], shape: Shape) -> Request:
    resources = {name: amount for name, amount in amounts.items() if amount}
    wanted = gpus(shape)
    return Request(
        groups=(*([Group(resources=resources)] if resources else []), *wanted),
        isolated=frozenset(group.suffix for group in wanted),
    )


def gpus(shape: Shape) -> list[Group]:
    """A group for each GPU."""
    _, _, count, milli, models = shape
    accepted = frozenset(trait(model) for model in models.split("|")) if models else None
    return [
        Group(
            suffix=f"_GPU{at}",
            resources={GPU: milli},
            required=(accepted,) if accepted else (),
        )
        for at in range(count)
    ]


def trait(model: str) -> str:
    return MODEL + re.sub("[^A-Z0-9_]", "_", model.upper())


def lines(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, Row]]:
    """The rows of a file, each with what to call it."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            table = csv.DictReader(file, restval="")
            missing = [column for column in columns if column not in (table.fieldnames or ())]
            if missing:
                raise BadWorkload(f"{path}, line 1", f"no column {', '.join(missing)}")
            for row in table:
                yield f"{path}, line {table.line_num}", row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadWorkload(str(path), str(error)) from error


def reader(where: str, row: Row) -> Callable[[str], int]:
    """Reads whole numbers of a row by the name of the column."""

    def number(column: str) -> int:
        text = row[column]
        if not (text.isascii() and text.isdecimal()):
            raise BadWorkload(where, f"{column} is to be a whole number, not {text!r}")
        return int(text)

    return number
