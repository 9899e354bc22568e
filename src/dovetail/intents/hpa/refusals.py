"""Refusals: why apps do not fit on a cluster, in a few words, by the constraint that is in the way.

The HPA controller tells them with its answer, for every shape of clusters once. First what no node
can give to a single pod: that is told with the most that any has. Else pods fit one by one and not
all at once: then that is told without which they would, found by packing again without it.
Explanations of one app on one cluster (`explaining`) say more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

import msgspec
import numpy as np
from msgspec.structs import replace

from dovetail.core.columns import Mask
from dovetail.core.explanation import Reason
from dovetail.core.explanation_text import listed
from dovetail.intents.hpa.demand import WorkloadDemand
from dovetail.intents.hpa.device_resources import PREFIX
from dovetail.intents.hpa.packer import Change, Packer, unchanged
from dovetail.intents.manifests.requirements import written_amount
from dovetail.podfit.filters import node_affinity, taints, unschedulable
from dovetail.podfit.objects import SelectorRequirement
from dovetail.podfit.packing.solver.problem import BudgetSpent
from dovetail.podfit.pod_request import PodRequest
from dovetail.podfit.pod_sum import CPU, PODS

AWAY, UNDECIDED, NO_NODES, FABRIC = "away", "undecided", "no_nodes", "fabric"
OUTSIDE_CLOUD, TOGETHER = "outside_cloud", "together"
"""Tokens beside those of `Reason`."""

MOST_NAMES = 3
NODES = "{nodes}"
"""Where names of nodes go into words."""


class ShapeRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Of an app on a shape; each of its clusters has it with the names of its own nodes."""

    token: str
    words: str
    nodes: tuple[str, ...] = ()
    """Of the shape's first cluster: these stand where `NODES` is in the words."""

    def words_for(self, names: Mapping[str, str]) -> str:
        """`names`: of the nodes of a cluster, by those of the first."""
        if not self.nodes:
            return self.words
        ours = sorted(names[each] for each in self.nodes)
        return self.words.replace(NODES, listed(ours, MOST_NAMES, ",", " and "))


class Suspect(msgspec.Struct, frozen=True):
    """Something without which pods may fit."""

    token: str
    name: str
    change: Change
    resources: tuple[str, ...] = ()


def shown(resource: str) -> str:
    """By the name that users know it by."""
    return resource.removeprefix(PREFIX).removesuffix(" (formed)")


def amount_text(resource: str, units: int) -> str:
    """As an intent would write it: units are thousandths of a CPU, bytes, pieces."""
    return written_amount(resource, Fraction(units, 1000 if resource == CPU else 1))


def refusal_of(packer: Packer, demands: Sequence[WorkloadDemand]) -> ShapeRefusal:
    """Of workloads that do not fit, all of one app."""
    if not packer.ready:
        is_empty = not packer.table.nodes.present.any()
        words = "the cluster has no nodes" if is_empty else "no node is ready"
        return ShapeRefusal(token=NO_NODES, words=words)
    wanted = [each for each in demands if each.workload.count or each.workload.per_node]
    for demand in wanted:
        found = _refusal_of_pod(packer, demand)
        if found is not None:
            return found
    gangs = [each for each in wanted if each.within_one]
    if gangs and _fits(packer, [replace(each, within_one=()) for each in wanted], unchanged):
        keys = "+".join(dict.fromkeys(key for each in gangs for key in each.within_one))
        names = "+".join(each.workload.name for each in gangs)
        return ShapeRefusal(token=FABRIC, words=f"{keys}: no one value has room for all of {names}")
    for suspect in _suspects(packer, wanted):
        if _fits(packer, wanted, suspect.change):
            return ShapeRefusal(token=suspect.token, words=_words(packer, wanted, suspect))
    return ShapeRefusal(token=TOGETHER, words="pods fit on nodes one by one, but not all at once")


def contended_for(packer: Packer, demands: Sequence[WorkloadDemand]) -> str:
    """What apps that fit alone, and not together, lack."""
    for suspect in _suspects(packer, demands):
        if _fits(packer, demands, suspect.change):
            return suspect.name
    return "room"


def _fits(packer: Packer, demands: Sequence[WorkloadDemand], change: Change) -> bool:
    try:
        return packer.fit(demands, change) is not None
    except BudgetSpent:
        return False


# -- one pod ---------------------------------------------------------------------------------------


def _refusal_of_pod(packer: Packer, demand: WorkloadDemand) -> ShapeRefusal | None:
    """Why no node takes a single pod of it, were it the only one; None: one does. Of a DaemonSet,
    why not each node does that has to."""
    fabric = [SelectorRequirement(key=key, operator="Exists") for key in demand.within_one]
    request = packer.request(demand)
    request = replace(request, node_labels=(*request.node_labels, *fabric))
    matching = packer.matching(request)
    if not matching:
        if demand.workload.per_node and not demand.needs_node:
            return None
        return _refusal_of_nodes(packer, demand, request)
    filtered = packer.table.filter(request, among=matching, without=Reason.AMOUNT)
    eligible = _names(packer, filtered.mask)
    is_on_each = demand.workload.per_node and not fabric
    if not eligible or (is_on_each and eligible != matching):
        stages = [each.reason for each in filtered.stages() if each.left < len(matching)]
        words = f"{demand.workload.name}: {filtered}"
        return ShapeRefusal(token=str(stages[0] if stages else TOGETHER), words=words)
    if is_on_each:
        return _refusal_of_every(packer, request, eligible)
    if demand.workload.per_node:
        return None
    return _refusal_of_amounts(packer, request, eligible)


def _refusal_of_nodes(packer: Packer, demand: WorkloadDemand, request: PodRequest) -> ShapeRefusal:
    """There is no node of the kind."""
    nodes, name = packer.table.nodes, demand.workload.name
    left: Mask = np.zeros(nodes.size, np.bool_)
    left[[nodes.rows.row(each) for each in packer.ready]] = True
    terms = [*request.node_labels]
    if request.node_terms is not None and len(request.node_terms) == 1:
        terms += request.node_terms[0].match_expressions
    for term in terms:
        if not (left & nodes.labels.meeting(term)).any():
            words = f"{_term_text(term)}: no node has it"
            return ShapeRefusal(token=Reason.NODE_AFFINITY, words=words)
    for step, words in (
        (unschedulable, "every node is cordoned"),
        (taints, f"{name} tolerates the taints of no node"),
        (node_affinity, f"no node is as {name} selects it"),
    ):
        passing = step.passing(nodes, request)
        left = left if passing is None else left & passing
        if not left.any():
            return ShapeRefusal(token=step.TOKEN, words=words)
    return ShapeRefusal(token=Reason.NODE_AFFINITY, words=f"no node is as {name} selects it")


def _term_text(term: SelectorRequirement) -> str:
    if term.operator == "In" and len(term.values) == 1:
        return f"{term.key}={term.values[0]}"
    return " ".join((term.key, term.operator, ", ".join(term.values))).rstrip()


def _refusal_of_amounts(
    packer: Packer, request: PodRequest, eligible: Sequence[str]
) -> ShapeRefusal | None:
    table = packer.table
    for resource, wanted in request.amounts:
        free = {name: max(table.free(name, resource), 0) for name in eligible}
        most = max(free.values())
        if most >= wanted:
            continue
        text = f"{shown(resource)}: need {amount_text(resource, wanted)}"
        if not any(table.allocatable(name, resource) for name in eligible):
            return ShapeRefusal(token=Reason.AMOUNT, words=f"{text}, none")
        nodes = tuple(name for name in eligible if free[name] == most)
        words = f"{text} on one node, largest free {amount_text(resource, most)} ({NODES})"
        return ShapeRefusal(token=Reason.AMOUNT, words=words, nodes=nodes)
    if packer.table.filter(request, among=eligible).mask.any():
        return None
    names = [
        shown(resource)
        for resource, wanted in request.amounts
        if any(table.free(name, resource) < wanted for name in eligible)
    ]
    wanted_texts = [
        f"{amount_text(resource, wanted)} {shown(resource)}"
        for resource, wanted in request.amounts
        if shown(resource) in names
    ]
    words = f"{'+'.join(names)}: no node has {' and '.join(wanted_texts)} free at once"
    return ShapeRefusal(token=Reason.AMOUNT, words=words)


def _refusal_of_every(
    packer: Packer, request: PodRequest, eligible: Sequence[str]
) -> ShapeRefusal | None:
    for resource, wanted in request.amounts:
        free = {name: max(packer.table.free(name, resource), 0) for name in eligible}
        short = tuple(name for name in eligible if free[name] < wanted)
        if short:
            least = amount_text(resource, min(free.values()))
            text = f"{shown(resource)}: need {amount_text(resource, wanted)} on every node"
            words = f"{text}, least free {least} ({NODES})"
            return ShapeRefusal(token=Reason.AMOUNT, words=words, nodes=short)
    return None


def _names(packer: Packer, mask: Mask) -> list[str]:
    rows = packer.table.nodes.rows
    return [name for name in packer.ready if mask[rows.row(name)]]


# -- all pods at once ------------------------------------------------------------------------------


def _suspects(packer: Packer, demands: Sequence[WorkloadDemand]) -> Iterator[Suspect]:
    """Resources one by one, as they are listed, then rules, then resources by two."""
    requests = [packer.request(each) for each in demands]
    listed_names = dict.fromkeys(name for each in requests for name, _ in each.amounts)
    names = [name for name in listed_names if name != PODS]
    for name in names:
        yield Suspect(Reason.AMOUNT, shown(name), _without(name), (name,))
    yield Suspect(Reason.HOST_PORT, "host ports", lambda each: replace(each, ports=()))
    yield Suspect(Reason.DISK, "disks", lambda each: replace(each, disks=()))
    yield Suspect(
        Reason.POD_ANTI_AFFINITY,
        "pod anti-affinity",
        lambda each: replace(each, pod_anti_affinity=()),
    )
    yield Suspect(Reason.POD_AFFINITY, "pod affinity", lambda each: replace(each, pod_affinity=()))
    yield Suspect(Reason.TOPOLOGY_SPREAD, "topology spread", lambda each: replace(each, spread=()))
    for at, name in enumerate(names):
        for other in names[at + 1 :]:
            both = (name, other)
            yield Suspect(Reason.AMOUNT, "+".join(map(shown, both)), _without(*both), both)
    if len(names) > 2:
        yield Suspect(Reason.AMOUNT, "+".join(map(shown, names)), _without(*names), tuple(names))


def _without(*names: str) -> Change:
    def change(request: PodRequest) -> PodRequest:
        kept = tuple(each for each in request.amounts if each[0] not in names)
        return replace(request, amounts=kept)

    return change


def _words(packer: Packer, demands: Sequence[WorkloadDemand], suspect: Suspect) -> str:
    """Of pods that would fit without it."""
    if not suspect.resources:
        return f"{suspect.name}: pods cannot be on nodes all at once"
    return "; ".join(_total_words(packer, demands, each) for each in suspect.resources)


def _total_words(packer: Packer, demands: Sequence[WorkloadDemand], resource: str) -> str:
    pieces = [
        (dict(kind.request.amounts).get(resource, 0), kind.count)
        for demand in demands
        for kind in packer.kinds(demand) or ()
    ]
    total = sum(amount * count for amount, count in pieces)
    free = sum(max(packer.table.free(name, resource), 0) for name in packer.ready)
    text = f"{shown(resource)}: need {amount_text(resource, total)} in all"
    if total > free:
        return f"{text}, free {amount_text(resource, free)}"
    largest = amount_text(resource, max(amount for amount, _ in pieces))
    return (
        f"{text}, up to {largest} on one node; free {amount_text(resource, free)}, in small parts"
    )
