"""Node rules in a pod template: nodeSelector, required and preferred node affinity, pins.

`requirements` writes labels with them, `editing` pins and fabrics. Terms of required affinity are
alternatives: a condition is ANDed into every one, or the others would be a way around it. A term
that demands nothing is met by no node, and stays so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dovetail.intents.group import LabelRequirement
from dovetail.intents.manifests.drafts import Draft, RawObject, child, copy_of, items

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
AFFINITY_PATH = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
NODE_NAME = "metadata.name"
"""The one field of nodes that affinity can ask for; for one name at a time."""


def expression_of(requirement: LabelRequirement) -> RawObject:
    written: RawObject = {"key": requirement.key, "operator": requirement.operator}
    if requirement.values:
        written["values"] = list(requirement.values)
    return written


def is_plain(requirement: LabelRequirement) -> bool:
    """Whether a nodeSelector can say it: a label with one value."""
    return requirement.operator == "In" and len(requirement.values) == 1


def select(draft: Draft, key: str, value: str, why: str) -> None:
    """What a chart wants of the same label gives way to the intent."""
    selector = child(child(draft.value, "spec"), "nodeSelector")
    before = selector.get(key)
    if before is not None and before != value:
        why = f"{why}; the chart had {before!r}"
    draft.put(selector, key, value, path=f"spec.nodeSelector[{key}]", why=why)


def require(draft: Draft, expression: RawObject, why: str) -> None:
    required = _required(draft)
    terms = [
        {**term, "matchExpressions": _with(items(term, "matchExpressions"), expression)}
        if _is_met_by_some(term)
        else term
        for term in items(required, "nodeSelectorTerms")
    ]
    wanted = terms or [{"matchExpressions": [expression]}]
    draft.put(required, "nodeSelectorTerms", wanted, path=AFFINITY_PATH, why=why)


def prefer(draft: Draft, weight: int, expression: RawObject, why: str) -> None:
    affinity = _node_affinity(draft)
    preference = {"weight": weight, "preference": {"matchExpressions": [expression]}}
    wanted = _with(items(affinity, PREFERRED), preference)
    path = f"spec.affinity.nodeAffinity.{PREFERRED}"
    draft.put(affinity, PREFERRED, wanted, path=path, why=why)


def pin(draft: Draft, nodes: Sequence[str], why: str) -> None:
    """To nodes by name, a term for each: a field of a term takes one name only."""
    required = _required(draft)
    there = items(required, "nodeSelectorTerms") or [{"matchFields": []}]
    wanted = [pinned for term in there for pinned in _pinned(term, nodes)]
    draft.put(required, "nodeSelectorTerms", wanted, path=AFFINITY_PATH, why=why)


def _pinned(term: RawObject, nodes: Sequence[str]) -> Iterator[RawObject]:
    fields = items(term, "matchFields")
    names = {name for each in fields if _is_name(each) for name in items(each, "values")}
    is_new = term == {"matchFields": []}
    if names & {*nodes} or not (is_new or _is_met_by_some(term)):
        yield term
        return
    # A term that names other nodes stays a term that no node of the pin meets.
    for node in nodes[:1] if names else nodes:
        field = {"key": NODE_NAME, "operator": "In", "values": [node]}
        yield {**copy_of(term), "matchFields": [*copy_of(fields), field]}


def _is_name(field: RawObject) -> bool:
    return field.get("key") == NODE_NAME and field.get("operator") == "In"


def _is_met_by_some(term: RawObject) -> bool:
    return bool(term.get("matchExpressions") or term.get("matchFields"))


def _node_affinity(draft: Draft) -> RawObject:
    return child(child(child(draft.value, "spec"), "affinity"), "nodeAffinity")


def _required(draft: Draft) -> RawObject:
    return child(_node_affinity(draft), REQUIRED)


def _with(there: list[RawObject], item: RawObject) -> list[RawObject]:
    return there if item in there else [*there, copy_of(item)]
