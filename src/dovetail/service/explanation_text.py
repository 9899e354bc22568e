"""Explanations in words: what people read, beside the tokens that programs read."""

from __future__ import annotations

from collections.abc import Callable

from dovetail.core.constraints import Constraint, Reason
from dovetail.core.request import Affinity
from dovetail.engine.explain import Finding, Relaxation
from dovetail.service.explanations import FITS, NOT_NOW, Explanation


def summary(explanation: Explanation) -> str:
    fitting, hosts = explanation.fitting, explanation.hosts
    if explanation.verdict == FITS:
        return f"{fitting} of {count_hosts(hosts)} {'fits' if fitting == 1 else 'fit'}."
    blocking = next((step for step in explanation.funnel if not step.left), None)
    last = f" None is left after: {demand(blocking.constraint)}." if blocking else ""
    if explanation.verdict == NOT_NOW:
        could = count_hosts(explanation.could)
        return f"No host fits now; {could} would if nothing were in use.{last}"
    return f"No host of this fleet can ever serve this, even with nothing in use.{last}"


def demand(constraint: Constraint) -> str:
    """What a constraint asks for."""
    return f"{DEMANDS[constraint.reason](constraint)}{in_group(constraint)}"


def in_group(constraint: Constraint) -> str:
    return f" (group {constraint.group})" if constraint.group else ""


def joined(constraint: Constraint) -> str:
    return " or ".join(sorted(constraint.names))


DEMANDS: dict[Reason, Callable[[Constraint], str]] = {
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


def finding(found: Finding, provider: str | None) -> str:
    """What a host has or lacks of a constraint; `provider` comes nearest to meeting it."""
    one = found.constraint
    if found.supply is None:
        return f"{demand(one)}: {'yes' if found.met else 'no'}{on(provider, one)}"
    supply = found.supply
    if not supply.capacity and not found.met:
        return f"{one.name}{in_group(one)}: wants {one.amount}, {provider} has none"
    place = f"{one.name} on {provider}{in_group(one)}"
    if found.reason is Reason.UNITS:
        return (
            f"{place}: {one.amount} is not from {supply.min_unit} to {supply.max_unit} "
            f"in steps of {supply.step_size}"
        )
    text = f"{place}: wants {one.amount}, free {supply.free} of {supply.capacity}"
    return text if found.met else f"{text}, {one.amount - supply.free} short"


def on(provider: str | None, constraint: Constraint) -> str:
    return f" ({provider})" if provider and constraint.group is not None else ""


def relaxation(found: Relaxation) -> str:
    changes = " and ".join(change(one, other) for one, other in found.changes.items())
    verb = "fits" if found.trees == 1 else "fit"
    return f"{count_hosts(found.trees)} {verb} if {changes}"


def change(one: Constraint, other: Constraint | None) -> str:
    if other is None:
        return f"{DROPS[one.reason](one)}{in_group(one)}"
    if one.affinity is None or other.affinity is None:
        return f"{one.text}{in_group(one)} becomes {other.amount}"
    out = sorted(members(one.affinity) - members(other.affinity))
    return f"{', '.join(out)} may be outside of the subtree {one.text}"


def members(affinity: Affinity) -> frozenset[str]:
    return affinity.together | affinity.apart


DROPS: dict[Reason, Callable[[Constraint], str]] = {
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


def count_hosts(count: int) -> str:
    return f"{count:,} host{'' if count == 1 else 's'}"
