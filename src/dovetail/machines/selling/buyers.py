"""Buyers: which namespaces may buy units, of a type or in a window; planner and webhook ask."""

from __future__ import annotations

from dovetail.machines.documents import Buyers, MachineSpec, MachineType
from dovetail.podfit.objects import LabelSelector, Namespace, SelectorRequirement
from dovetail.podfit.selectors import is_readable, matches, selector_of

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
"""Of label selectors; those of node affinity know two more."""


def is_label_requirement(term: SelectorRequirement) -> bool:
    """Whether the API server would take it in a label selector."""
    return term.operator in OPERATORS and is_readable(term)


def selects(selector: LabelSelector | None, namespace: Namespace) -> bool:
    """By Kubernetes' rules: none selects nothing, an empty one everything."""
    if selector is None or not all(map(is_label_requirement, selector.match_expressions)):
        return False
    return matches(selector_of(selector), namespace.metadata.labels)


def may_buy(buyers: Buyers | None, namespace: Namespace) -> bool:
    """Nobody is excluded where nothing is said; who is named, and who is selected, add up."""
    if buyers is None:
        return True
    listed = namespace.metadata.name in buyers.namespaces
    return listed or selects(buyers.namespace_selector, namespace)


def may_buy_type(spec: MachineSpec, machine_type: MachineType, namespace: Namespace) -> bool:
    """What is said for the Machine and what is said for its type have to let it in, both."""
    return may_buy(spec.buyers, namespace) and may_buy(machine_type.buyers, namespace)
