"""Nearest nodes: what those of a guest's pool lack that come nearest to taking it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from dovetail.core.explanation import Finding, PlaceFindings, Reason
from dovetail.core.explanation_text import listed
from dovetail.machines.documents import PoolNode
from dovetail.machines.marks import CONDITIONS, state_of
from dovetail.machines.names import MAINTENANCE
from dovetail.machines.pods import type_of
from dovetail.machines.selling.standing import MachineStanding
from dovetail.machines.selling.windows import lease_end
from dovetail.machines.shapes import types_served
from dovetail.machines.status import time_text
from dovetail.podfit.filters.resources import ResourceShortage, amount_text
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import PodRequest, pod_request_of

MOST = 5
MOST_HOLDERS = 3
"""Named of one node."""


def nearest_nodes(
    standing: MachineStanding, pod: Pod, most: int = MOST
) -> tuple[PlaceFindings, ...]:
    """Nodes without a unit or without room for it first, then those that its own demands rule out,
    then those that do not serve its type now."""
    name, request = type_of(pod), pod_request_of(pod)
    serving = standing.survey.serving[name]
    eligible = standing.room.eligible(request)
    found = []
    for node in serving:
        if node in eligible:
            lacking = list(_short(standing, name, request, node))
            if not standing.books[name].has_stock_on(name, node):
                lacking.insert(0, _sold(standing, name, node))
            if lacking:
                found.append(_place(node, tuple(lacking)))
    found.sort(key=lambda place: len(place.findings))
    excluded = [node for node in serving if node not in eligible]
    if excluded:
        table = standing.snapshot.table
        filtered = table.filter(request, among=excluded, without=Reason.AMOUNT)
        found += filtered.explanation(most).nearest
    types = types_served(standing.snapshot.spec)
    found += [
        _place(entry.name, (_not_serving(standing, entry),))
        for entry in standing.snapshot.spec.node_pool
        if name in types.of(entry.types) and entry.name not in serving
    ]
    return tuple(found[:most])


def _place(node: str, findings: tuple[Finding, ...]) -> PlaceFindings:
    return PlaceFindings(name=node, uuid=None, fits=False, findings=findings)


def _finding(reason: Reason, constraint: str, node: str, words: str) -> Finding:
    """Of something that may change any time."""
    return Finding(
        reason=reason,
        group=None,
        constraint=constraint,
        met=False,
        ever=True,
        provider=node,
        provider_uuid=None,
        words=words,
    )


def _short(
    standing: MachineStanding, name: str, request: PodRequest, node: str
) -> Iterator[Finding]:
    """Amounts of which there would be too little even if all stock of its family made way."""
    family = standing.books[name].family
    stock = [
        sleeper
        for each in (family.root, *family.children)
        for sleeper in standing.sleepers.on_node(each.name, node)
    ]
    for resource, amount in request.amounts:
        held = sum(dict(each.request.amounts).get(resource, 0) for each in stock)
        free = standing.room.free(node, resource) + held
        has = standing.snapshot.table.allocatable(node, resource)
        if free < amount:
            yield Finding(
                reason=Reason.AMOUNT,
                group=None,
                constraint=f"{resource}:{amount_text(resource, amount)}",
                met=False,
                ever=has >= amount,
                provider=node,
                provider_uuid=None,
                words=ResourceShortage(resource, amount, free, has).words,
                wanted=amount,
                free=free,
                capacity=has,
                short=amount - free,
            )


def _sold(standing: MachineStanding, name: str, node: str) -> Finding:
    """Who has the units of its family that are there."""
    names = standing.books[name].family.available
    there = [
        pod
        for pod in standing.survey.holders
        if type_of(pod) in names and standing.survey.places[pod.metadata.uid] == node
    ]
    holders = [f"{pod.key}{lease_words(standing, pod)}" for pod in there]
    words = f"no unit of {name} is left"
    if holders:
        words = f"{words}; here they are held by {listed(holders, MOST_HOLDERS, ', ', ' and ')}"
    return _finding(Reason.STOCK, name, node, words)


def lease_words(standing: MachineStanding, pod: Pod) -> str:
    """Such as ` until 2026-11-16T20:00:00Z`; nothing, if its unit is lent without end."""
    snapshot = standing.snapshot
    unit = snapshot.units.get(pod.metadata.uid)
    kind = next((one for one in snapshot.spec.machine_types if one.name == type_of(pod)), None)
    if unit is None or kind is None:
        return ""
    end = lease_end(datetime.fromtimestamp(unit.since, UTC), kind)
    if end is None:
        return ""
    return f" {'until' if end > snapshot.now else 'overdue since'} {time_text(end.timestamp())}"


def _not_serving(standing: MachineStanding, entry: PoolNode) -> Finding:
    node = standing.snapshot.nodes.get(entry.name)
    state = state_of(node, entry)
    if node is None:
        words = "there is no such node at present"
    elif state == MAINTENANCE:
        words = "is in maintenance: nothing is sold there"
    elif entry.name in standing.survey.unmarked:
        words = "is not marked yet as a node of its pool"
    else:
        words = "is not ready, or cordoned"
    return _finding(Reason.POOL_NODE, f"condition={CONDITIONS[state]}", entry.name, words)
