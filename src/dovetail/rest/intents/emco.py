"""What EMCO answers where it differs from us: status codes and texts, kind by kind.

Used if `intents.emco_status_codes` is set. Texts are those that EMCO's clients match on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dovetail.intents.documents.errors import Violation
from dovetail.intents.documents.kinds import DocumentKind

Json = dict[str, Any]

NOT_THERE = "The requested resource not found"
NO_PARENT = "Cannot perform requested operation. Parent resource not found"
CHILDREN = "Cannot delete parent without deleting child references first"
REFERENCED = "Cannot delete without deleting or updating referencing resources first"
MISMATCH = "Mismatched name in PUT request"
EMPTY = "Empty body"
INVALID = "Invalid Input:"
NO_FILE, BAD_FILE = "Unable to process file", "Error in file format"
BLANK_METADATA = ("description", "userData1", "userData2")


class EmcoAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Of one kind."""

    missing: str
    """No such document."""
    exists: str
    missing_to_delete: str = NOT_THERE
    no_parent: tuple[int, str] = (409, NO_PARENT)
    """POST below what is not there."""
    no_parent_to_list: str = ""
    """What GET of a list says then, with 404; empty: it answers an empty list."""
    replaced: int = 200
    made_by_put: int = 200
    empty_list: Any = None
    empty_post: str = EMPTY
    empty_put: str = EMPTY
    mismatch: str = MISMATCH
    blanks: bool = True
    """Metadata that is not there is answered as empty text."""
    file_needed: bool = False
    mismatch_last: bool = False
    """That names differ is told only where the parent is there."""


ANSWERS: Mapping[str, EmcoAnswers] = {
    "project": EmcoAnswers(
        missing="Project not found",
        exists="Project already exists",
        missing_to_delete="Project not found",
    ),
    "composite-app": EmcoAnswers(
        missing="App not found",
        exists="App already exists",
        no_parent_to_list="Project not found",
        replaced=201,
        made_by_put=201,
    ),
    "app": EmcoAnswers(
        missing="App not found",
        exists="App already exists",
        replaced=201,
        made_by_put=201,
        file_needed=True,
    ),
    "composite-profile": EmcoAnswers(
        missing="CompositeProfile not found",
        exists="CompositeProfile already exists",
        replaced=201,
        made_by_put=201,
    ),
    "profile": EmcoAnswers(
        missing="AppProfile not found",
        exists="AppProfile already exists",
        no_parent=(404, "CompositeProfile not found"),
        replaced=201,
        made_by_put=201,
        file_needed=True,
    ),
    "deployment-intent-group": EmcoAnswers(
        missing="DeploymentIntentGroup not found",
        exists="DeploymentIntent already exists",
        no_parent_to_list="App not found",
        made_by_put=201,
    ),
    "group-intent": EmcoAnswers(
        missing="Intent not found",
        exists="Intent already exists",
        made_by_put=201,
        empty_list={"intent": None},
    ),
    "generic-placement-intent": EmcoAnswers(
        missing="Intent not found",
        exists="Intent already exists",
        no_parent_to_list="App not found",
        made_by_put=201,
    ),
    "app-intent": EmcoAnswers(
        missing="Intent not found",
        exists="Intent already exists",
        made_by_put=201,
        blanks=False,
    ),
    "hpa-intent": EmcoAnswers(
        missing="Intent not found",
        exists="Intent already exists",
        missing_to_delete="Intent not found",
        empty_post="addHpaIntentHandler .. Empty POST body",
        mismatch="putHpaIntentHandler .. Mismatched name in PUT request",
    ),
    "hpa-consumer": EmcoAnswers(
        missing="Consumer not found",
        exists="Consumer already exists",
        missing_to_delete="Consumer not found",
        empty_post="addHpaConsumerHandler .. Empty POST body",
        mismatch="putHpaConsumerHandler ..Mismatched name in PUT request",
    ),
    "hpa-requirement": EmcoAnswers(
        missing="Resource not found",
        exists="Resource already exists",
        missing_to_delete="Resource not found",
        no_parent=(404, "Consumer not found"),
        empty_put="putHpaResourceHandler .. Empty body",
        mismatch="putHpaResourceHandler .. Mismatched name in PUT request",
        mismatch_last=True,
    ),
    "logical-cloud": EmcoAnswers(
        missing="Logical Cloud not found",
        exists="Logical Cloud already exists",
        missing_to_delete="Logical Cloud not found",
        no_parent=(404, "Project not found"),
        replaced=201,
        made_by_put=201,
        empty_post="EOF",
    ),
    "cluster-reference": EmcoAnswers(
        missing="Cluster reference not found",
        exists="Cluster reference already exists",
        no_parent=(404, "Requested resource not found."),
    ),
    "cluster-quota": EmcoAnswers(missing="Cluster Quota not found", exists="Quota already exists"),
    "user-permission": EmcoAnswers(
        missing="User Permission not found", exists="User Permission already exists"
    ),
    "cloud-kv": EmcoAnswers(missing="Key Value not found", exists="Key Value already exists"),
    "cluster-provider": EmcoAnswers(
        missing="Cluster provider not found",
        exists="ClusterProvider already exists",
        replaced=201,
        made_by_put=201,
        empty_list=[],
    ),
    "cluster": EmcoAnswers(
        missing="Cluster not found",
        exists="Cluster already exists",
        no_parent_to_list="Cluster provider not found",
        empty_list=[],
        file_needed=True,
    ),
    "cluster-label": EmcoAnswers(
        missing="Cluster label not found",
        exists="Cluster Label already exists",
        no_parent_to_list="Cluster not found",
        replaced=201,
        made_by_put=201,
        empty_list=[],
        mismatch="Mismatched label name in PUT request",
    ),
    "cluster-kv": EmcoAnswers(
        missing="Cluster key value pair not found",
        exists="Cluster KV Pair already exists",
        no_parent_to_list="Cluster not found",
        replaced=201,
        made_by_put=201,
        empty_list=[],
    ),
    "controller": EmcoAnswers(
        missing="Controller not found",
        exists="Controller already exists",
        replaced=201,
        made_by_put=201,
    ),
    "clm-controller": EmcoAnswers(
        missing="ClmController not found", exists="ClmController already exists"
    ),
}
OTHERS = EmcoAnswers(missing=NOT_THERE, exists="Requested resource already exist.")


def answers_of(kind: DocumentKind) -> EmcoAnswers:
    return ANSWERS.get(kind.name, OTHERS)


def shown(kind: DocumentKind, document: Json) -> Json:
    """As EMCO would write it: what is absent is empty text, and false is absent."""
    found = dict(document)
    if "metadata" in found and answers_of(kind).blanks:
        found["metadata"] = {**dict.fromkeys(BLANK_METADATA, ""), **found["metadata"]}
    fill = _FILLED.get(kind.name)
    if fill is not None:
        found["spec"] = {**fill, **found.get("spec", {})}
    if kind.name == "hpa-requirement" and not found["spec"].get("mandatory", True):
        found["spec"] = {key: each for key, each in found["spec"].items() if key != "mandatory"}
    return found


_FILLED: Mapping[str, Json] = {
    "deployment-intent-group": {"overrideValues": None},
    "controller": {"type": "", "priority": 0},
    "logical-cloud": {"level": "1"},
    "cluster": {
        "gitOps": {"gitOpsType": "", "gitOpsReferenceObject": "", "gitOpsResourceObject": ""}
    },
}

APP_INTENT_TEXTS = (
    ("clusterProvider is required", "Missing clusterProvider in an intent"),
    ("cluster is required", "Missing cluster or clusterLabel"),
    ("Must not validate the schema (not)", "Only one of cluster name or cluster label allowed"),
    ("app is required", "Missing app for the intent"),
)


def violations_text(kind: DocumentKind | None, violations: Sequence[Violation]) -> str:
    if kind is not None and kind.name == "app-intent":
        for told, text in APP_INTENT_TEXTS:
            if any(told in each.emco for each in violations):
                return text
        if any(each.field == "metadata.name" for each in violations):
            return "Missing name for the intent"
    return "\n".join((INVALID, *(each.emco for each in violations)))
