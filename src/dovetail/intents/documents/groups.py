"""Deployment intent groups and what they hold beside hardware: generic placement, affinity, and
which controllers are called.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.intents.documents.common import app_member, named_document
from dovetail.intents.documents.shapes import (
    NAME,
    DocumentFindings,
    IntegerShape,
    Json,
    ListShape,
    MapShape,
    RecordMember,
    RecordShape,
    TextShape,
    plain,
)

MOST_CLUSTERS = 5000
"""In one list: as many as a fleet may have."""

PROVIDER = RecordMember(
    name="clusterProvider",
    shape=TextShape(longest=128),
    aliases=("providerName",),
    zero_is_absent=True,
)
CLUSTER = RecordMember(
    name="cluster", shape=TextShape(longest=128), aliases=("clusterName",), zero_is_absent=True
)
LABEL = RecordMember(
    name="clusterLabel",
    shape=TextShape(longest=128),
    aliases=("clusterLabelName",),
    zero_is_absent=True,
)


def check_term(term: Json, field: str, findings: DocumentFindings) -> None:
    """Clusters of a provider, by name or by label."""
    if "clusterProvider" not in term:
        findings.broken(f"{field}.clusterProvider", "is required", "clusterProvider is required")
    elif "cluster" in term and "clusterLabel" in term:
        told = "either cluster or clusterLabel"
        findings.broken(f"{field}.cluster", told, "Must not validate the schema (not)")
    elif "cluster" not in term and "clusterLabel" not in term:
        findings.broken(f"{field}.cluster", "cluster or clusterLabel", "cluster is required")


def check_all_of(item: Json, field: str, findings: DocumentFindings) -> None:
    """A term, or one of several."""
    if "anyOf" not in item:
        check_term(item, field, findings)
    elif len(item) > 1:
        findings.broken(f"{field}.anyOf", "stands alone in an item of allOf")


TERM = RecordShape(members=(PROVIDER, CLUSTER, LABEL), rules=(check_term,))
TERMS = ListShape(items=TERM, most=MOST_CLUSTERS)


class PreferenceShape(msgspec.Struct, frozen=True):
    """Terms in the order of preference; several that are as good stand in a list."""

    def read(self, value: Any, field: str, findings: DocumentFindings) -> list[Any]:
        if isinstance(value, list):
            value = [each if isinstance(each, list) else [each] for each in value]
        return ListShape(items=TERMS, most=100).read(value, field, findings)

    def schema(self) -> Json:
        return {
            "type": "array",
            "maxItems": 100,
            "items": {"anyOf": [TERM.schema(), TERMS.schema()]},
        }


def count_beside_intent(spec: Json) -> Json:
    """Where `count` and `preference` stand among the lists, they are about all of them."""
    for key, inner in spec.items():
        if plain(key) == "intent" and isinstance(inner, dict):
            outer = {name: inner[name] for name in ("count", "preference") if name in inner}
            return {**outer, **spec}
    return spec


GROUP = named_document(
    RecordShape(
        members=(
            RecordMember(
                name="compositeProfile",
                shape=NAME,
                emco_required=True,
                aliases=("profile",),
                emco_blank=True,
            ),
            RecordMember(name="version", shape=NAME, emco_required=True, emco_blank=True),
            RecordMember(
                name="overrideValues",
                shape=ListShape(
                    items=RecordShape(
                        members=(
                            app_member(),
                            RecordMember(
                                name="values",
                                shape=MapShape(values=TextShape(longest=4096)),
                                required=True,
                            ),
                        )
                    )
                ),
                aliases=("overrideValuesObj",),
            ),
            RecordMember(name="logicalCloud", shape=NAME, emco_required=True, emco_blank=True),
            RecordMember(name="pin", shape=TextShape(choices=("nodes",))),
        )
    ),
    spec_required=False,
    emco_required=True,
)
"""Without a profile nothing is overridden; without a logical cloud any cluster may be picked."""

INTENTS = named_document(
    RecordShape(
        members=(
            RecordMember(
                name="intent",
                shape=MapShape(values=TextShape(longest=128), longest_key=128),
                required=True,
            ),
        )
    )
)

GENERIC_PLACEMENT = named_document()

APP_INTENT = named_document(
    RecordShape(
        rewrite=count_beside_intent,
        members=(
            app_member(),
            RecordMember(
                name="intent",
                shape=RecordShape(
                    members=(
                        RecordMember(
                            name="allOf",
                            shape=ListShape(
                                items=RecordShape(
                                    members=(
                                        PROVIDER,
                                        CLUSTER,
                                        LABEL,
                                        RecordMember(name="anyOf", shape=TERMS),
                                    ),
                                    rules=(check_all_of,),
                                ),
                                most=MOST_CLUSTERS,
                            ),
                        ),
                        RecordMember(name="anyOf", shape=TERMS),
                    )
                ),
                required=True,
            ),
            RecordMember(
                name="count",
                shape=IntegerShape(least=1, most=MOST_CLUSTERS),
                aliases=("replicationCount",),
            ),
            RecordMember(name="preference", shape=PreferenceShape()),
        ),
    )
)


def check_lists(spec: Json, field: str, findings: DocumentFindings) -> None:
    both = set(spec.get("deny", ())) & {*spec.get("require", ()), *spec.get("allow", ())}
    if both:
        findings.broken(f"{field}.deny", f"{min(both)!r} is in another list, too")
    if spec.get("app") in (*spec.get("deny", ()), *spec.get("require", ())):
        findings.broken(f"{field}.app", "an app is always where it is itself")


_APPS = ListShape(items=NAME)
AFFINITY = named_document(
    RecordShape(
        members=(
            app_member(),
            RecordMember(name="allow", shape=_APPS),
            RecordMember(name="deny", shape=_APPS),
            RecordMember(name="require", shape=_APPS),
        ),
        rules=(check_lists,),
    )
)
