"""Plan of one Machine: what has to be done so that cluster and ledger are as they should be.

The operator calls `plan_machine` after every change and carries the plan out in the order of its
fields; `dovetail machines` calls it to tell what would be done. A plan is made of the snapshot
alone and can be made again at any time: nothing is remembered between two plans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import inf
from typing import Any

import msgspec

from dovetail.machines.documents import Machine, MachineNodePool, MachineShape
from dovetail.machines.leases import LeaseNotice, leases_of
from dovetail.machines.line import GuestLine, line_of
from dovetail.machines.names import MACHINE_TYPE, pool_name, stock_name
from dovetail.machines.objects import (
    is_contained,
    is_pool,
    pool_of,
    pool_spec_of,
    service_of,
    sleeper_request,
    stateful_set_of,
)
from dovetail.machines.parameters import shape_parameters
from dovetail.machines.selling.seller import Sale
from dovetail.machines.selling.standing import MachineStanding
from dovetail.machines.selling.waiting import Waiting
from dovetail.machines.selling.windows import next_change
from dovetail.machines.shapes import shapes_of
from dovetail.machines.snapshot import MachineSnapshot
from dovetail.machines.status import ConditionFound, PlanOutcome, conditions_of, status_of
from dovetail.machines.stock.places import Stocking, StockPlan, wanted_replicas
from dovetail.machines.stock.sleepers import Sleeper
from dovetail.podfit.objects import KubeObject, Pod, Service, StatefulSet


class PutObject(msgspec.Struct, frozen=True):
    """Fields that an owned object should have, and does not."""

    kind: type[KubeObject]
    name: str
    body: dict[str, Any]


class DropObject(msgspec.Struct, frozen=True):
    """An owned object of a type that is no more."""

    kind: type[KubeObject]
    name: str


class MachinePlan(msgspec.Struct, frozen=True, kw_only=True):
    releases: tuple[str, ...]
    """Units to give back, by the uid of who held them."""
    adoptions: tuple[Pod, ...]
    """Bound guests that the ledger has to be told of."""
    stock_adoptions: tuple[Sleeper, ...]
    withdrawals: tuple[Pod, ...]
    """Guests that wait, and for whom the scheduler still keeps room that others need."""
    sales: tuple[Sale, ...]
    puts: tuple[PutObject, ...]
    drops: tuple[DropObject, ...]
    removals: tuple[tuple[Pod, str], ...]
    """Sleepers that go, but for those of sales, and why."""
    lifts: tuple[tuple[Pod, str], ...]
    """Pods that have their unit already: their gate is to be lifted, on this node."""
    stock: StockPlan
    waiting: Mapping[str, Waiting]
    """Why each guest waits, by uid."""
    is_part: bool
    """Whether some of the line have not had their turn."""
    line: GuestLine
    notices: tuple[LeaseNotice, ...]
    status: dict[str, Any]
    conditions: tuple[ConditionFound, ...]
    look_again: datetime | None


def plan_machine(snapshot: MachineSnapshot, enough: float = inf) -> MachinePlan:
    """`enough` units are sold by one plan: the rest of the line is served by the next."""
    # 1. Where everything stands, and what is sold.
    standing = MachineStanding(snapshot)
    survey, families, seller = standing.survey, standing.families, standing.seller
    # 2. Sell what can be sold.
    sales, waiting = seller.sell(survey.waiting, standing.groups_sold, enough)
    # 3. Hold the rest as stock.
    excess = [each.pod for book in families for each in seller.remove_excess(book)]
    stock, moved = stock_of(standing)
    replicas = dict.fromkeys(standing.books, 0)
    for book in families:
        replicas |= wanted_replicas(book)
    puts, drops = object_changes(snapshot, replicas)
    gone = standing.sleepers.removed
    lifts = [each for each in survey.lifts if each[0].metadata.uid not in gone]
    # 4. Tell.
    leases = leases_of(snapshot, survey.holders)
    line = line_of(survey, sales, waiting)
    outcome = PlanOutcome(
        survey=survey,
        books=standing.books,
        buying=standing.buying,
        line=line,
        shortages=stock.shortages,
        wanted=sum(replicas.values()),
        held=len(survey.sleepers),
    )
    changes = (next_change(each, snapshot.now) for each in snapshot.spec.machine_types)
    looks = [each for each in (leases.look_again, *changes) if each is not None]
    return MachinePlan(
        releases=(*survey.releases, *standing.given_up),
        adoptions=tuple(survey.adoptions),
        stock_adoptions=tuple(each for each in survey.stock_adoptions if each.uid not in gone),
        withdrawals=tuple(
            pod
            for pod in survey.waiting
            if pod.status.nominated_node_name and pod.metadata.uid in waiting
        ),
        sales=tuple(sales),
        puts=puts,
        drops=drops,
        removals=(
            *survey.removals,
            *((each.pod, "others have taken its room") for each in standing.misplaced),
            *((pod, "its unit is sold or gone") for pod in excess),
            *((each.pod, "it is in the way of other stock") for each in moved),
        ),
        lifts=(*survey.granted, *lifts),
        stock=stock,
        waiting=waiting,
        is_part=len(waiting) + sum(len(each.orders) for each in sales) < len(survey.waiting),
        line=line,
        notices=leases.notices,
        status=status_of(snapshot, outcome),
        conditions=conditions_of(snapshot, outcome),
        look_again=min(looks, default=None),
    )


def stock_of(standing: MachineStanding) -> tuple[StockPlan, list[Sleeper]]:
    """Where sleepers go when all is sold that can be, and those that go elsewhere for it."""
    snapshot, survey = standing.snapshot, standing.survey
    group, settings = snapshot.machine.group, snapshot.settings
    stocking = Stocking(
        standing.families,
        requests={
            name: sleeper_request(shape, group, settings) for name, shape in standing.shapes.items()
        },
        serving=survey.serving,
        gated=survey.gated,
        sleepers=standing.sleepers,
        room=standing.room,
    )
    serving = sorted({name for names in survey.serving.values() for name in names})
    plan, moved = stocking.place(
        (snapshot.nodes[name] for name in serving),
        is_mixed=snapshot.spec.several_types_per_node,
    )
    if survey.unmarked:
        # What a node offers is not known before it carries its marks.
        return msgspec.structs.replace(plan, shortages=()), []
    return plan, moved


def object_changes(
    snapshot: MachineSnapshot, replicas: Mapping[str, int]
) -> tuple[tuple[PutObject, ...], tuple[DropObject, ...]]:
    """Owned objects that are not as they should be, or should not be."""
    group, settings = snapshot.machine.group, snapshot.settings
    puts = pool_change(snapshot)
    wanted: set[str] = set()
    for shape in shapes_of(snapshot.spec).values():
        name = stock_name(shape.name, group)
        wanted.add(name)
        bodies: list[tuple[type[KubeObject], Mapping[str, KubeObject], dict[str, Any]]] = [
            (MachineShape, snapshot.shapes, shape_parameters(group, shape)),
            (Service, snapshot.services, service_of(shape, group)),
            (
                StatefulSet,
                snapshot.stateful_sets,
                stateful_set_of(shape, group, replicas[shape.name], settings),
            ),
        ]
        for kind, there, body in bodies:
            found = there.get(name)
            if found is None or not is_same(body, found, snapshot.machine):
                puts.append(PutObject(kind, name, body))
    owned: Sequence[tuple[type[KubeObject], Mapping[str, KubeObject]]] = (
        (StatefulSet, snapshot.stateful_sets),
        (Service, snapshot.services),
        (MachineShape, snapshot.shapes),
    )
    drops = [
        DropObject(kind, found.metadata.name)
        for kind, there in owned
        for found in there.values()
        if found.metadata.name not in wanted and MACHINE_TYPE in found.metadata.labels
    ]
    return tuple(puts), tuple(drops)


def pool_change(snapshot: MachineSnapshot) -> list[PutObject]:
    wanted, there = pool_spec_of(snapshot.spec, snapshot.machine.group), snapshot.pool
    if there is not None:
        is_right = is_pool(there, wanted) and is_owned(there, snapshot.machine)
        if is_going(there) or is_right:
            return []
    name = pool_name(snapshot.machine.metadata.name)
    return [PutObject(MachineNodePool, name, pool_of(wanted))]


def is_same(wanted: dict[str, Any], there: KubeObject, machine: Machine) -> bool:
    """Whether the object says all that is wanted. One that is going is left to go."""
    if is_going(there):
        return True
    return is_owned(there, machine) and is_contained(wanted, msgspec.to_builtins(there))


def is_owned(there: KubeObject, machine: Machine) -> bool:
    """Whether it goes when the Machine goes: a Machine may find what another of its group left."""
    return any(each.uid == machine.metadata.uid for each in there.metadata.owner_references)


def is_going(there: KubeObject) -> bool:
    return there.metadata.deletion_timestamp is not None
