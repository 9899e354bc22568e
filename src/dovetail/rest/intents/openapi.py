"""OpenAPI part of the door of intents, made from the registry of kinds as its routes are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dovetail.intents.documents.kinds import KINDS, DocumentKind
from dovetail.intents.documents.shapes import NAME, RecordShape
from dovetail.rest.intents.actions import OUTPUTS
from dovetail.rest.intents.documents import MOST_LISTED, OCTETS
from dovetail.rest.intents.listings import FILTERS
from dovetail.rest.intents.multipart import FORM
from dovetail.rest.intents.routes import CLOUD_PATH, GROUP_PATH
from dovetail.rest.openapi.operations import (
    IDEMPOTENT,
    TEXT,
    YES_OR_NO,
    Document,
    DoorDescription,
    Operation,
    a_list,
    an_object,
    ref,
)
from dovetail.rest.server.errors import PROBLEM

NAME_SCHEMA = NAME.schema()
ANY_OBJECT: Document = {"type": "object"}
FILE: Document = {"type": "string", "contentMediaType": OCTETS}
PAGING: Document = {
    "limit": {"type": "integer", "minimum": 1, "maximum": MOST_LISTED},
    "after": {"type": "integer", "minimum": 0, "maximum": 2**53},
}
FILTER_SCHEMAS: Document = {
    "withLabels": {"type": "string", "enum": ["true", "false"]},
    "label": TEXT,
    "app": TEXT,
}


def title(kind: DocumentKind) -> str:
    return "".join(word.capitalize() for word in kind.name.split("-")) + "Document"


def answered(shape: RecordShape) -> Document:
    """What is answered of a document: all but what is secret; nothing has to be there."""
    found = shape.schema()
    spec = next((each.shape for each in shape.members if each.name == "spec"), None)
    if isinstance(spec, RecordShape):
        secret = {each.name for each in spec.members if each.is_secret}
        shown = found["properties"]["spec"]["properties"]
        found["properties"]["spec"] = {
            **found["properties"]["spec"],
            "properties": {name: each for name, each in shown.items() if name not in secret},
        }
    found["required"] = [name for name in found.get("required", ()) if name != "spec"]
    return found


def form_of(kind: DocumentKind) -> Document:
    return an_object({"metadata": ref(title(kind)), "file": FILE}, "file")


def document_operations(kind: DocumentKind) -> Iterator[tuple[tuple[str, str], Operation]]:
    shown, many = ref(f"{title(kind)}Shown"), kind.collection_template()
    forms = {FORM: form_of(kind)} if kind.file else {}
    filters = {name: FILTER_SCHEMAS[name] for name in FILTERS.get(kind.name, ())}
    by_name = {kind.query: TEXT} if kind.query else {}
    listed = a_list({"anyOf": [shown, TEXT]} if kind.name == "cluster" else shown)
    yield (
        ("GET", many),
        Operation(
            summary=f"All of a kind: {kind.about}.",
            query={"type": "object", "properties": {**PAGING, **filters, **by_name}},
            answers={200: {"anyOf": [listed, shown]} if kind.query else listed},
        ),
    )
    yield (
        ("POST", many),
        Operation(
            summary=f"Make {kind.about}.",
            body=ref(title(kind)),
            more_bodies=forms,
            answers={201: shown},
            headers=IDEMPOTENT,
            refusals=(409, 415, 422),
        ),
    )
    yield (
        ("DELETE", many),
        Operation(
            summary=f"Delete all of a kind, or none: {kind.about}.",
            query={"type": "object", "properties": by_name},
            answers={204: None},
            refusals=(409,),
        ),
    )
    yield from single_operations(kind, shown, forms)


def single_operations(
    kind: DocumentKind, shown: Document, forms: Document
) -> Iterator[tuple[tuple[str, str], Operation]]:
    one = kind.template()
    keyed = {"key": TEXT} if kind.name == "cluster-kv" else {}
    yield (
        ("GET", one),
        Operation(
            summary=f"Show {kind.about}.",
            query={"type": "object", "properties": keyed},
            answers={200: {} if keyed else shown},
            more_answers={FORM: ANY_OBJECT, OCTETS: FILE} if kind.file else {},
        ),
    )
    yield (
        ("PUT", one),
        Operation(
            summary=f"Replace {kind.about}.",
            body=ref(title(kind)),
            more_bodies=forms,
            answers={200: shown},
            refusals=(409, 415, 422),
        ),
    )
    yield (
        ("DELETE", one),
        Operation(summary=f"Delete {kind.about}.", answers={204: None}, refusals=(409,)),
    )


def action(
    summary: str, *, query: Document | None = None, body: Document | None = None
) -> Operation:
    return Operation(
        summary=summary,
        query={"type": "object", "properties": query or {}},
        body=body,
        answers={202: ANY_OBJECT},
        headers=IDEMPOTENT,
        refusals=(409, 422),
    )


STATUS_QUERY: Document = {
    "instance": TEXT,
    "type": {"type": "string", "enum": ["ready", "deployed", "cluster", "rsync"]},
    "output": {"type": "string", "enum": list(OUTPUTS)},
    "app": NAME_SCHEMA,
    "cluster": TEXT,
    "resource": TEXT,
}
REVISION = an_object(
    {"spec": an_object({"revision": {"type": "integer", "minimum": 1, "maximum": 10**9 - 1}})}
)

ACTIONS: Mapping[tuple[str, str], Operation] = {
    ("POST", f"{GROUP_PATH}/approve"): action("Approve a group: it may be instantiated."),
    ("POST", f"{GROUP_PATH}/instantiate"): action("Pick clusters, claim hardware, deploy."),
    ("POST", f"{GROUP_PATH}/terminate"): action("Remove what was deployed, give hardware back."),
    ("POST", f"{GROUP_PATH}/stop"): action("Stop what is under way."),
    ("POST", f"{GROUP_PATH}/update"): action(
        "Bring what is deployed to what the documents say now.",
        query={"replace": {"type": "string", "enum": ["true", "false"]}},
    ),
    ("POST", f"{GROUP_PATH}/rollback"): action("Go back to a revision.", body=REVISION),
    ("GET", f"{GROUP_PATH}/status"): Operation(
        summary="What is deployed where, and where pods run.",
        query={"type": "object", "properties": STATUS_QUERY},
        answers={200: ANY_OBJECT},
        refusals=(409, 422),
    ),
    ("GET", f"{GROUP_PATH}/plan"): Operation(
        summary="Candidates, the pick and edited manifests; nothing is sent.",
        answers={200: ANY_OBJECT},
        refusals=(409, 422),
    ),
    ("GET", f"{GROUP_PATH}/explain"): Operation(
        summary="Why an app can go to a cluster or not, and what would help.",
        query={"type": "object", "properties": {"app": TEXT, "cluster": TEXT}, "required": ["app"]},
        answers={200: ANY_OBJECT},
        refusals=(409, 422),
    ),
    ("POST", f"{CLOUD_PATH}/instantiate"): Operation(
        summary="Instantiate a logical cloud.",
        answers={202: ref("CloudStatus")},
        refusals=(409,),
    ),
    ("POST", f"{CLOUD_PATH}/terminate"): Operation(
        summary="Terminate a logical cloud.", answers={202: ref("CloudStatus")}, refusals=(409,)
    ),
    ("GET", f"{CLOUD_PATH}/status"): Operation(
        summary="The state of a logical cloud.", answers={200: ref("CloudStatus")}
    ),
}

SCHEMAS: Mapping[str, Document] = {
    **{title(kind): kind.shape.schema() for kind in KINDS.values()},
    **{f"{title(kind)}Shown": answered(kind.shape) for kind in KINDS.values()},
    "CloudStatus": an_object(
        {"project": TEXT, "name": TEXT, "state": TEXT, "clusters": a_list(TEXT)}
    ),
    "IntentProblem": an_object(
        {
            "type": TEXT,
            "status": {"type": "integer"},
            "title": TEXT,
            "detail": TEXT,
            "request_id": TEXT,
            "field": TEXT,
            "violations": a_list(an_object({"field": TEXT, "message": TEXT})),
            "reasons": a_list({}),
            "is_proven": YES_OR_NO,
        },
        "field",
        "violations",
        "reasons",
        "is_proven",
    ),
}

DESCRIPTION = DoorDescription(
    about="hardware intents over many clusters",
    note="Paths below /v2 are there without it, too.",
    operations={
        **{key: each for kind in KINDS.values() for key, each in document_operations(kind)},
        **ACTIONS,
    },
    schemas=SCHEMAS,
    errors={PROBLEM: {"schema": ref("IntentProblem")}},
    path_parameters={name: NAME_SCHEMA for kind in KINDS.values() for name in kind.placeholders},
)
