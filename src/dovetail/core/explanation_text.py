"""Explanations in words: what people read, beside the tokens that programs read.

The finders take their sentences from here, as far as more than one of them, or more than one door,
says the same; a filter of `podfit` words its own rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dovetail.core.constraints import Constraint
from dovetail.core.explanation import ConsumerMove, Reason, Stage, Verdict
from dovetail.core.inventory import Supply
from dovetail.core.request import Affinity

# -- what every explanation says -------------------------------------------------------------------


def count_of(count: int, noun: str) -> str:
    """1 host, 2 hosts."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shortfall(wanted: object, free: object, capacity: object, short: object = None) -> str:
    """Of an amount; `short` is None where there is enough."""
    text = f"wants {wanted}, free {free} of {capacity}"
    return text if short is None else f"{text}, {short} short"


def listed(texts: Sequence[str], most: int, between: str, before_more: str) -> str:
    """The first of them, and how many more there are."""
    more = len(texts) - most
    text = between.join(texts[:most])
    return f"{text}{before_more}{more} more" if more > 0 else text


# -- candidates for a request ----------------------------------------------------------------------


def summary_of_hosts(
    verdict: Verdict, hosts: int, fitting: int, could: int, funnel: Sequence[Stage]
) -> str:
    """`could`: hosts that would fit if nothing were in use."""
    if verdict is Verdict.FITS:
        return f"{fitting} of {count_of(hosts, 'host')} {'fits' if fitting == 1 else 'fit'}."
    blocking = next((stage for stage in funnel if not stage.left), None)
    last = f" None is left after: {blocking.words}." if blocking else ""
    if verdict is Verdict.NOT_NOW:
        return f"No host fits now; {count_of(could, 'host')} would if nothing were in use.{last}"
    return f"No host of this fleet can ever serve this, even with nothing in use.{last}"


def constraint_text(constraint: Constraint) -> str:
    """What a constraint asks for."""
    return f"{CONSTRAINT_TEXTS[constraint.reason](constraint)}{in_group(constraint)}"


def in_group(constraint: Constraint) -> str:
    return f" (group {constraint.group})" if constraint.group else ""


def joined(constraint: Constraint) -> str:
    return " or ".join(sorted(constraint.names))


CONSTRAINT_TEXTS: dict[Reason, Callable[[Constraint], str]] = {
    Reason.AMOUNT: lambda one: f"room for {one.text}",
    Reason.TRAIT: lambda one: f"trait {joined(one)}",
    Reason.FORBIDDEN_TRAIT: lambda one: f"not trait {joined(one)}",
    Reason.AGGREGATE: lambda one: f"in aggregate {joined(one)}",
    Reason.FORBIDDEN_AGGREGATE: lambda one: f"not in aggregate {joined(one)}",
    Reason.ATTRIBUTE: lambda one: f"attribute {one.text}",
    Reason.CLASS: lambda one: f"of class {one.text}",
    Reason.IN_TREE: lambda one: f"in the tree of {one.text}",
    Reason.ROOT_TRAIT: lambda one: f"root with trait {joined(one)}",
    Reason.ROOT_FORBIDDEN_TRAIT: lambda one: f"root without trait {joined(one)}",
    Reason.ROOT_AGGREGATE: lambda one: f"root in aggregate {joined(one)}",
    Reason.ROOT_FORBIDDEN_AGGREGATE: lambda one: f"root not in aggregate {joined(one)}",
    Reason.SHARED_CAPACITY: lambda one: f"enough {one.text} for all groups together",
    Reason.TOGETHER: lambda one: f"trait {joined(one)} among the providers chosen",
    Reason.ISOLATION: lambda one: f"a provider each for {one.text}",
    Reason.SAME_SUBTREE: lambda one: f"{one.text} in one subtree",
}


def finding(
    one: Constraint, reason: Reason, supply: Supply | None, provider: str | None, *, met: bool
) -> str:
    """What a host has or lacks of a constraint; `provider` comes nearest to meeting it."""
    if supply is None:
        return f"{constraint_text(one)}: {'yes' if met else 'no'}{on(provider, one)}"
    if not supply.capacity and not met:
        return f"{one.name}{in_group(one)}: wants {one.amount}, {provider} has none"
    place = f"{one.name} on {provider}{in_group(one)}"
    units = (
        f"{one.amount} is not from {supply.min_unit} to {supply.max_unit} "
        f"in steps of {supply.step_size}"
    )
    if reason is Reason.UNITS:
        return f"{place}: {units}"
    short = None if met or supply.free >= one.amount else one.amount - supply.free
    text = f"{place}: {shortfall(one.amount, supply.free, supply.capacity, short)}"
    if not supply.allows(one.amount):
        return f"{text}; and {units}"
    return text if met or short is not None else f"{text}, which other groups take"


def shortage(one: Constraint, shortages: Sequence[tuple[str, int, int, int]]) -> str:
    """Of classes that groups contend for: which are short, by name, wanted, free and capacity."""
    texts = [
        f"{name} {shortfall(wanted, free, capacity)}" for name, wanted, free, capacity in shortages
    ]
    return f"{constraint_text(one)}: no, {'; '.join(texts)}"


def addition(host: str, added: Sequence[tuple[str, str, int]]) -> str:
    """`added`: provider, class and amount."""
    texts = " and ".join(f"{amount} {name} to {provider}" for provider, name, amount in added)
    return f"{host} fits if you add {texts}"


def on(provider: str | None, constraint: Constraint) -> str:
    return f" ({provider})" if provider and constraint.group is not None else ""


def relaxation(
    changes: Mapping[Constraint, Constraint | None], hosts: int, vanishing: Sequence[str] = ()
) -> str:
    """`hosts` fit if these constraints are changed; None: dropped."""
    texts = " and ".join(change(one, other) for one, other in changes.items())
    rest = f"; with it goes {', '.join(vanishing)}" if vanishing else ""
    return f"{count_of(hosts, 'host')} {'fits' if hosts == 1 else 'fit'} if {texts}{rest}"


def change(one: Constraint, other: Constraint | None) -> str:
    if other is None:
        return f"{DROPPED_TEXTS[one.reason](one)}{in_group(one)}"
    if one.reason is Reason.ISOLATION:
        return f"{', '.join(sorted(one.names - other.names))} may share a provider"
    if one.affinity is None or other.affinity is None:
        return f"{one.text}{in_group(one)} becomes {other.amount}"
    out = sorted(members(one.affinity) - members(other.affinity))
    return f"{', '.join(out)} may be outside of the subtree {one.text}"


def members(affinity: Affinity) -> frozenset[str]:
    return affinity.together | affinity.apart


DROPPED_TEXTS: dict[Reason, Callable[[Constraint], str]] = {
    Reason.AMOUNT: lambda one: f"{one.text} is not asked for",
    Reason.TRAIT: lambda one: f"trait {joined(one)} is not required",
    Reason.FORBIDDEN_TRAIT: lambda one: f"trait {joined(one)} is allowed",
    Reason.AGGREGATE: lambda one: f"it may be outside of aggregate {joined(one)}",
    Reason.FORBIDDEN_AGGREGATE: lambda one: f"it may be in aggregate {joined(one)}",
    Reason.ATTRIBUTE: lambda one: f"attribute {one.text} is not required",
    Reason.CLASS: lambda one: f"it need not be of class {one.text}",
    Reason.IN_TREE: lambda one: f"it may be in another tree than that of {one.text}",
    Reason.ROOT_TRAIT: lambda one: f"the root need not have trait {joined(one)}",
    Reason.ROOT_FORBIDDEN_TRAIT: lambda one: f"the root may have trait {joined(one)}",
    Reason.ROOT_AGGREGATE: lambda one: f"the root may be outside of aggregate {joined(one)}",
    Reason.ROOT_FORBIDDEN_AGGREGATE: lambda one: f"the root may be in aggregate {joined(one)}",
    Reason.TOGETHER: lambda one: f"trait {joined(one)} is not required",
    Reason.ISOLATION: lambda one: f"{one.text} may share a provider",
    Reason.SAME_SUBTREE: lambda one: f"{one.text} need not be in one subtree",
}


def move_plan(host: str, moves: Sequence[ConsumerMove], *, swap: bool) -> str:
    """Whom to move so that the host fits."""
    texts = "; ".join(map(move, moves))
    swapping = "; some have to leave before they can move" if swap else ""
    return f"{host} fits if you {texts}{swapping}"


def move(one: ConsumerMove) -> str:
    held = " ".join(f"{name}:{amount}" for name, amount in one.resources.items())
    source = one.source.name or one.source.uuid
    if one.to is None:
        return f"have {one.consumer} ({held}) leave {source}: no host has room for it"
    later = f" after {', '.join(one.after)}" if one.after else ""
    return f"move {one.consumer} ({held}) from {source} to {one.to.name or one.to.uuid}{later}"


# -- devices of a class ----------------------------------------------------------------------------


def summary_of_devices(name: str, devices: int, selected: int, units: int, healthy: int) -> str:
    some = f"{selected} of {devices} device{'' if devices == 1 else 's'}"
    of_units = f"{units} unit{'' if units == 1 else 's'}, {healthy} of them healthy"
    return f"{name} selects {some}: {of_units}."


# -- nodes for a pod -------------------------------------------------------------------------------

NO_NODES = "no nodes available to schedule pods"


def summary_of_nodes(fitting: int, nodes: int, reasons: Mapping[str, int]) -> str:
    """In the way of kube-scheduler: 0/5 nodes are available: 3 Insufficient cpu, ..."""
    if not nodes:
        return f"0/0 nodes are available: {NO_NODES}."
    counted = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
    listed_reasons = ", ".join(f"{count} {reason}" for reason, count in counted)
    return f"{fitting}/{nodes} nodes are available{listed_reasons and f': {listed_reasons}'}."


FILTER_TEXTS = {
    Reason.UNSCHEDULABLE: "not cordoned",
    Reason.TAINT: "no taint that the pod does not tolerate",
    Reason.NODE_AFFINITY: "labels as the pod's node selector and affinity want them",
    Reason.HOST_PORT: "host ports that are free",
    Reason.AMOUNT: "room for the pod's requests",
    Reason.DISK: "disks that no other pod there uses",
    Reason.TOPOLOGY_SPREAD: "topology spread constraints",
    Reason.POD_AFFINITY: "near the pods that the pod's affinity means",
    Reason.POD_ANTI_AFFINITY: "away from the pods that the pod's anti-affinity means",
    Reason.EXISTING_ANTI_AFFINITY: "away from pods whose anti-affinity means the pod",
    Reason.NODE_FEATURE: "declaring the features that the pod needs",
}
"""What each filter demands of a node."""


# -- a unit for a guest ----------------------------------------------------------------------------

GUEST_TEXTS = {
    Reason.MACHINE: "a Machine of its group, and accepted",
    Reason.MACHINE_TYPE: "a type of that name",
    Reason.SCHEDULING_GATE: "no scheduling gates of others",
    Reason.UNIT_SHAPE: "requests of just one unit",
    Reason.UNIT_GROUP: "all pods of its unit group",
    Reason.BUYER: "a namespace that may buy",
    Reason.CAP: "caps of its namespace and user",
    Reason.STOCK: "a unit that is not sold",
    Reason.WINDOW: "a unit that no window keeps for others",
    Reason.POOL_NODE: "serving the type, and ready",
    Reason.AMOUNT: "room for a unit where stock makes way",
}
"""What each rule demands of the guest, or of a node of its pool."""


def guest_relaxation(changes: Sequence[str], nodes: int) -> str:
    """`nodes` fit if all of this is so."""
    fits = "fits" if nodes == 1 else "fit"
    return f"{count_of(nodes, 'node')} {fits} if {' and '.join(changes)}"
