"""OpenAPI part of Dovetail's own door."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.core.explanation import Explanation
from dovetail.core.fleet import Line
from dovetail.ledger.bulk.audit import AuditFindings, LedgerFault
from dovetail.ledger.totals import ClassTotal
from dovetail.rest.dovetail import attributes, claims, classes, names, whatif
from dovetail.rest.dovetail.fleet import MEDIA
from dovetail.rest.dovetail.views.openapi import VIEW_SCHEMAS, VIEWS
from dovetail.rest.openapi.operations import (
    AMOUNTS,
    CUT_SHORT,
    IDEMPOTENT,
    NUMBER,
    TEXT,
    UUID,
    YES_OR_NO,
    Document,
    DoorDescription,
    Operation,
    a_list,
    a_map,
    an_object,
    maybe,
    ref,
)
from dovetail.rest.query.schema import LIST_CANDIDATES
from dovetail.rest.query.versions import NEWEST
from dovetail.rest.server.errors import PROBLEM

STRUCTS = {
    "Explanation": Explanation,
    "Line": Line,
    "Fault": LedgerFault,
    "Findings": AuditFindings,
    "Total": ClassTotal,
    "Question": whatif.WhatIfQuestion,
    "Wanted": claims.BestClaimRequest,
    "Asked": names.NamesRequest,
    "Marked": attributes.ProviderAttributes,
    "Defined": classes.ClassDocument,
}

OPTION = an_object(
    {
        "position": NUMBER,
        "allocations": ref("NamedAllocations"),
        "scores": {"type": "object"},
    },
    "scores",
)

UNITS = {"allocatable": NUMBER, "requested": NUMBER, "available": NUMBER}
TIME: Document = {"type": "string", "format": "date-time"}
DEVICE = an_object(
    {
        "node": TEXT,
        "name": TEXT,
        "kind": TEXT,
        "vendor": TEXT,
        "units": NUMBER,
        "healthy": YES_OR_NO,
        "properties": a_map(TEXT),
        "used": NUMBER,
    }
)

SCHEMAS: dict[str, Document] = {
    **VIEW_SCHEMAS,
    "ClassOfDevices": an_object(
        {"name": TEXT, "spec": {"type": "object"}, "created_at": TIME, **UNITS}
    ),
    "NamedAllocations": a_map(an_object({"name": maybe(TEXT), "resources": AMOUNTS})),
    "Decision": an_object(
        {
            "id": NUMBER,
            "at": TIME,
            "consumer": TEXT,
            "query": TEXT,
            "outcome": TEXT,
            "candidates": NUMBER,
            "chosen": OPTION,
            "passed_over": a_list(OPTION),
            "words": TEXT,
        },
        "words",
    ),
}


def with_host(query: Document) -> Document:
    own = {"host": TEXT, "moves": {"type": "string", "enum": ["0", "1"]}}
    return {**query, "properties": {**query["properties"], **own}}


def asking(**parameters: Document) -> Document:
    return {"type": "object", "properties": parameters}


NATURAL: Document = {"type": "integer", "minimum": 1, "maximum": 10**15 - 1}
FOUND = {"name": TEXT, "uuid": UUID, "host": TEXT, "host_uuid": UUID}
CANDIDATES = {
    "allocation_requests": a_list(ref("AllocationRequest")),
    "provider_summaries": a_map(ref("ProviderSummary")),
}
HOSTS = an_object({"hosts": NUMBER})

OPERATIONS: Mapping[tuple[str, str], Operation] = {
    ("GET", "/v1/fleet"): Operation(
        summary="The ledger, or trees of it, as a fleet document: one JSON object a line.",
        query=asking(tree=TEXT),
        answers={200: TEXT},
        answer_type=MEDIA[0],
        refusals=(404,),
    ),
    ("POST", "/v1/fleet"): Operation(
        summary="Add trees and consumers: one JSON object (`Line`) a line, all or nothing.",
        body=TEXT,
        body_type=MEDIA[0],
        answers={200: an_object({"providers": NUMBER, "consumers": NUMBER})},
        refusals=(409, 413, 415),
    ),
    **VIEWS,
    ("GET", "/v1/explain"): Operation(
        summary="Why a request fits or not, and what would make it fit.",
        query=with_host(LIST_CANDIDATES.at(NEWEST).schema),
        answers={200: ref("Explanation")},
        refusals=(403, 404),
    ),
    ("POST", "/v1/whatif"): Operation(
        summary="Where a request would fit if the fleet were another.",
        body=ref("Question"),
        answer_headers=CUT_SHORT,
        answers={
            200: an_object(
                {
                    "before": HOSTS,
                    "after": HOSTS,
                    "explanation": ref("Explanation"),
                    **CANDIDATES,
                }
            )
        },
        refusals=(404, 409),
    ),
    ("POST", "/v1/claims"): Operation(
        summary="Find the best place and claim it.",
        body=ref("Wanted"),
        headers=IDEMPOTENT,
        answers={
            201: an_object(
                {
                    "consumer": UUID,
                    "allocations": ref("NamedAllocations"),
                    "mappings": a_map(a_list(UUID)),
                    "decision": NUMBER,
                }
            )
        },
        refusals=(409, 422),
    ),
    ("GET", "/v1/decisions"): Operation(
        summary="What was asked, chosen and passed over, newest first.",
        query=asking(limit={**NATURAL, "maximum": 1000}, before=NATURAL, consumer=TEXT),
        answers={200: an_object({"decisions": a_list(ref("Decision"))})},
    ),
    ("POST", "/v1/names"): Operation(
        summary="Providers by name or UUID, and the host each belongs to.",
        body=ref("Asked"),
        answers={200: an_object({"providers": a_map(an_object(FOUND))})},
    ),
    ("GET", "/v1/usage"): Operation(
        summary="How full the fleet is, or one tree of it.",
        query=asking(tree=TEXT),
        answers={200: an_object({"classes": a_map(ref("Total"))})},
        refusals=(404,),
    ),
    ("GET", "/v1/providers/{uuid}/attributes"): Operation(
        summary="What selectors look at of a provider: texts by key.",
        answers={200: ref("Marked")},
    ),
    ("PUT", "/v1/providers/{uuid}/attributes"): Operation(
        summary="Make these all the attributes of a provider.",
        body=ref("Marked"),
        answers={200: ref("Marked")},
        refusals=(409,),
    ),
    ("GET", "/v1/classes"): Operation(
        summary="Resource classes: what devices each selects, and how many units there are.",
        answers={200: an_object({"classes": a_list(ref("ClassOfDevices"))})},
    ),
    ("GET", "/v1/classes/{class_name}"): Operation(
        summary="One resource class.", answers={200: ref("ClassOfDevices")}
    ),
    ("PUT", "/v1/classes/{class_name}"): Operation(
        summary="Define a resource class; what one selects does not change.",
        body=ref("Defined"),
        answers={200: ref("ClassOfDevices"), 201: ref("ClassOfDevices")},
        refusals=(409,),
    ),
    ("DELETE", "/v1/classes/{class_name}"): Operation(
        summary="Forget a resource class; what is held of its devices stays held.",
        answers={204: None},
    ),
    ("GET", "/v1/devices"): Operation(
        summary="The devices of all nodes, or of one.",
        query=asking(node=TEXT),
        answers={200: an_object({"devices": a_list(DEVICE)})},
    ),
    ("GET", "/v1/audit"): Operation(
        summary="What is wrong in the ledger, if anything.", answers={200: ref("Findings")}
    ),
    ("POST", "/v1/audit"): Operation(
        summary="Heal what can be healed safely.",
        answers={
            200: an_object(
                {
                    "checked": AMOUNTS,
                    "healed": a_list(ref("Fault")),
                    "faults": a_list(ref("Fault")),
                }
            )
        },
    ),
}

DESCRIPTION = DoorDescription(
    about="Dovetail's own",
    operations=OPERATIONS,
    schemas=SCHEMAS,
    structs=STRUCTS,
    errors={PROBLEM: {"schema": ref("Problem")}},
    path_parameters={
        "uuid": UUID,
        "host": {"type": "string", "minLength": 1},
        "consumer": UUID,
        "class_name": {"type": "string", "pattern": "^[a-z0-9.-]+$"},
    },
)
