"""Workloads in which tasks name a model: a trait of devices, drawn for a share of the tasks.

`dovetail simulate --named` makes them of any workload; a model is any trait that the fleet's
devices have.
"""

from __future__ import annotations

from collections import Counter

import msgspec
import numpy as np

from dovetail.core.request import Request
from dovetail.engine.rank.demand import measured_classes
from dovetail.simulate.errors import BadPlan
from dovetail.simulate.workload import Task, Workload, typical_of

EVENLY, BY_STOCK = "evenly", "stock"


def naming(workload: Workload, percent: int, drawn: str, seed: int) -> Workload:
    """The workload with so many percent of the tasks that take devices naming a model."""
    classes = frozenset(measured_classes(typical_of(workload.tasks)))
    stock = models_of(workload, classes)
    if not stock:
        raise BadPlan(f"{workload.name}: no device has a trait that tasks could name")
    models = sorted(stock)
    units = np.array([stock[model] if drawn == BY_STOCK else 1 for model in models], np.float64)
    # Its own numbers, so that the order of arrivals is that of the same seed without names.
    random = np.random.default_rng([seed, len(models)])
    draws = random.random(len(workload.tasks)) < percent / 100
    chosen = random.choice(len(models), len(workload.tasks), p=units / units.sum())
    tasks = tuple(
        named(task, models[model], classes) if draw else task
        for task, draw, model in zip(workload.tasks, draws.tolist(), chosen.tolist(), strict=True)
    )
    return msgspec.structs.replace(workload, tasks=tasks)


def models_of(workload: Workload, classes: frozenset[str]) -> Counter[str]:
    """Traits of devices, and how many units have each."""
    found: Counter[str] = Counter()
    for provider in workload.fleet.providers:
        held = sum(
            provider.inventories[name].total for name in classes & provider.inventories.keys()
        )
        if held:
            found.update(dict.fromkeys(provider.traits, held))
    return found


def named(task: Task, model: str, classes: frozenset[str]) -> Task:
    return msgspec.structs.replace(
        task,
        requests=tuple(requiring(request, model, classes) for request in task.requests),
        typical=requiring(task.typical, model, classes),
    )


def requiring(request: Request, model: str, classes: frozenset[str]) -> Request:
    """The request with that model for its devices, instead of what it named before."""
    groups = tuple(
        msgspec.structs.replace(group, required=(frozenset([model]),))
        if group.suffix and not classes.isdisjoint(group.resources)
        else group
        for group in request.groups
    )
    return msgspec.structs.replace(request, groups=groups)
