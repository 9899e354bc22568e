"""Label selectors as Kubernetes reads them, decided on one value or on a set of labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from dovetail.podfit.objects import LabelSelector, SelectorRequirement

Labels = Mapping[str, str]
Selector = tuple[SelectorRequirement, ...] | None
"""All of these are to be met. Empty: met by everything. None: met by nothing."""

INTEGER = re.compile(r"[+-]?[0-9]+")
LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
SMALLEST, LARGEST = -(2**63), 2**63 - 1


def is_met(term: SelectorRequirement, value: str | None) -> bool:
    """Whether a requirement is met by the value of its label; None: there is no such label."""
    match term.operator:
        case "In":
            return value is not None and value in term.values
        case "NotIn":
            return value is None or value not in term.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            ours, bound = integer(value or ""), integer(term.values[0])
            if ours is None or bound is None:
                return False
            return ours > bound if term.operator == "Gt" else ours < bound
        case _:
            return False


def integer(text: str) -> int | None:
    """A decimal number of 64 bits, or None."""
    if not INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if SMALLEST <= number <= LARGEST else None


def is_readable(term: SelectorRequirement) -> bool:
    """Whether Kubernetes can make sense of it. No node meets a term with one it cannot."""
    count = len(term.values)
    if not all(LABEL_VALUE.fullmatch(value) for value in term.values):
        return False
    match term.operator:
        case "In" | "NotIn":
            return count > 0
        case "Exists" | "DoesNotExist":
            return count == 0
        case "Gt" | "Lt":
            return count == 1 and integer(term.values[0]) is not None
        case _:
            return False


def matches(selector: Selector, labels: Labels) -> bool:
    return selector is not None and all(is_met(term, labels.get(term.key)) for term in selector)


def equal_to(labels: Labels) -> tuple[SelectorRequirement, ...]:
    """Requires just these labels."""
    return tuple(
        SelectorRequirement(key=key, operator="In", values=(labels[key],)) for key in sorted(labels)
    )


def selector_of(written: LabelSelector | None) -> Selector:
    if written is None or not all(map(is_readable, written.match_expressions)):
        return None
    return equal_to(written.match_labels) + written.match_expressions


def with_pod_values(
    selector: Selector, keys: Iterable[str], labels: Labels, operator: str
) -> Selector:
    """With the pod's own values of `keys` required (or, with NotIn, forbidden).

    A current API server has written them into the selector when the pod was created; what was
    written there stays true when labels change later, so it is left as it is.
    """
    if selector is None:
        return None
    there = {term.key for term in selector if term.operator == operator}
    return selector + tuple(
        SelectorRequirement(key=key, operator=operator, values=(labels[key],))
        for key in keys
        if key in labels and key not in there
    )
