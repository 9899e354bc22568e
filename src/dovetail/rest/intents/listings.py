"""Lists of some kinds that can be asked for in special ways, and how EMCO shows lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dovetail.intents.documents.errors import unmet
from dovetail.intents.documents.kinds import DocumentKind
from dovetail.ledger import Transaction
from dovetail.ledger.intents.objects import IntentObject
from dovetail.rest.intents import emco
from dovetail.rest.server.errors import HttpError, bad_request
from dovetail.rest.server.http import Query
from dovetail.service.intents import objects as store

FILTERS: Mapping[str, tuple[str, ...]] = {
    "cluster": ("label", "withLabels"),
    "profile": ("app",),
    "app-intent": ("app",),
    "hpa-intent": ("app",),
}
"""Parameters of lists, by kind."""


def chosen(
    tx: Transaction, kind: DocumentKind, page: Sequence[IntentObject], query: Query
) -> list[Any] | None:
    """What a filter leaves, in the filter's own form; None without one."""
    if kind.name == "cluster":
        return chosen_clusters(tx, page, query)
    app = query.get("app") if "app" in FILTERS.get(kind.name, ()) else None
    if app is None:
        return None
    found = (store.document_of(each) for each in page)
    return [each for each in found if each.get("spec", {}).get("app") == app]


def chosen_clusters(
    tx: Transaction, page: Sequence[IntentObject], query: Query
) -> list[Any] | None:
    with_labels = query.get("withLabels")
    if with_labels not in (None, "true", "false"):
        raise bad_request("withLabels: true or false")
    if with_labels == "true":
        return [
            {
                "metadata": store.document_of(each)["metadata"],
                "labels": store.children_of(tx, each, "cluster-label"),
            }
            for each in page
        ]
    label = query.get("label")
    return None if label is None else store.clusters_with_label(tx, page, label)


def as_emco(kind: DocumentKind, found: list[Any]) -> Any:
    """EMCO has null for a list of nothing, and shows some lists in another form."""
    if not found:
        if kind.name == "cluster-reference":
            raise unmet("cluster-references", "there are none", "No Cluster References associated")
        return emco.answers_of(kind).empty_list
    if kind.name == "group-intent":
        return {"intent": [each["spec"]["intent"] for each in found]}
    return found


def value_of(document: Mapping[str, Any], key: str) -> Any:
    """Of a document with values by key."""
    for each in document.get("spec", {}).get("kv", ()):
        if key in each:
            return each[key]
    raise HttpError(404, f"there is no value {key!r}")
