"""The operations that are Dovetail's own."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.core.explanation import Explanation
from dovetail.core.fleet import Line
from dovetail.ledger.bulk.audit import Fault, Findings
from dovetail.ledger.totals import Total
from dovetail.rest.dovetail import attributes, claims, classes, names, whatif
from dovetail.rest.dovetail.fleet import MEDIA
from dovetail.rest.openapi.operations import (
    AMOUNTS,
    NUMBER,
    TEXT,
    UUID,
    YES_OR_NO,
    Document,
    Operation,
    a_list,
    a_map,
    an_object,
    maybe,
    ref,
)
from dovetail.rest.openapi.placement import newest
from dovetail.rest.placement import schemas

PLAIN = "text/plain"
STRUCTS = (
    Explanation,
    Line,
    Fault,
    Findings,
    Total,
    whatif.Question,
    claims.Wanted,
    names.Asked,
    attributes.Marked,
    classes.Defined,
)
"""Types that bodies are read into or written from; each becomes a schema of its name."""

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
    return {**query, "properties": {**query["properties"], "host": TEXT}}


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
    ("GET", "/livez"): Operation(
        summary="Whether the process runs.", answers={200: TEXT}, answer_type=PLAIN
    ),
    ("GET", "/readyz"): Operation(
        summary="Whether the database answers and the snapshot is current.",
        answers={200: TEXT},
        answer_type=PLAIN,
        refusal_types={503: PLAIN},
    ),
    ("GET", "/metrics"): Operation(
        summary="Metrics for Prometheus.",
        answers={200: TEXT},
        answer_type=PLAIN,
        refusals=(401, 403, 404),
    ),
    ("GET", "/dovetail/v1/openapi.json"): Operation(
        summary="This description.", answers={200: an_object({"openapi": TEXT})}
    ),
    ("GET", "/dovetail/v1/fleet"): Operation(
        summary="The ledger, or trees of it, as a fleet document: one JSON object a line.",
        query=asking(tree=TEXT),
        answers={200: TEXT},
        answer_type=MEDIA[0],
        refusals=(404,),
    ),
    ("POST", "/dovetail/v1/fleet"): Operation(
        summary="Add trees and consumers: one JSON object (`Line`) a line, all or nothing.",
        body=TEXT,
        body_type=MEDIA[0],
        answers={200: an_object({"providers": NUMBER, "consumers": NUMBER})},
        refusals=(409, 413, 415),
    ),
    ("GET", "/dovetail/v1/explain"): Operation(
        summary="Why a request fits or not, and what would make it fit.",
        query=with_host(newest(schemas.LIST_CANDIDATES)),
        answers={200: ref("Explanation")},
        refusals=(404,),
    ),
    ("POST", "/dovetail/v1/whatif"): Operation(
        summary="Where a request would fit if the fleet were another.",
        body=ref("Question"),
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
    ("POST", "/dovetail/v1/claims"): Operation(
        summary="Find the best place and claim it.",
        body=ref("Wanted"),
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
        refusals=(409,),
    ),
    ("GET", "/dovetail/v1/decisions"): Operation(
        summary="What was asked, chosen and passed over, newest first.",
        query=asking(limit={**NATURAL, "maximum": 1000}, before=NATURAL, consumer=TEXT),
        answers={200: an_object({"decisions": a_list(ref("Decision"))})},
    ),
    ("POST", "/dovetail/v1/names"): Operation(
        summary="Providers by name or UUID, and the host each belongs to.",
        body=ref("Asked"),
        answers={200: an_object({"providers": a_map(an_object(FOUND))})},
    ),
    ("GET", "/dovetail/v1/usage"): Operation(
        summary="How full the fleet is, or one tree of it.",
        query=asking(tree=TEXT),
        answers={200: an_object({"classes": a_map(ref("Total"))})},
        refusals=(404,),
    ),
    ("GET", "/dovetail/v1/providers/{uuid}/attributes"): Operation(
        summary="What selectors look at of a provider: texts by key.",
        answers={200: ref("Marked")},
    ),
    ("PUT", "/dovetail/v1/providers/{uuid}/attributes"): Operation(
        summary="Make these all the attributes of a provider.",
        body=ref("Marked"),
        answers={200: ref("Marked")},
        refusals=(409,),
    ),
    ("GET", "/dovetail/v1/classes"): Operation(
        summary="Resource classes: what devices each selects, and how many units there are.",
        answers={200: an_object({"classes": a_list(ref("ClassOfDevices"))})},
    ),
    ("GET", "/dovetail/v1/classes/{class_name}"): Operation(
        summary="One resource class.", answers={200: ref("ClassOfDevices")}
    ),
    ("PUT", "/dovetail/v1/classes/{class_name}"): Operation(
        summary="Define a resource class; what one selects does not change.",
        body=ref("Defined"),
        answers={200: ref("ClassOfDevices"), 201: ref("ClassOfDevices")},
        refusals=(409,),
    ),
    ("DELETE", "/dovetail/v1/classes/{class_name}"): Operation(
        summary="Forget a resource class; what is held of its devices stays held.",
        answers={204: None},
    ),
    ("GET", "/dovetail/v1/devices"): Operation(
        summary="The devices of all nodes, or of one.",
        query=asking(node=TEXT),
        answers={200: an_object({"devices": a_list(DEVICE)})},
    ),
    ("GET", "/dovetail/v1/audit"): Operation(
        summary="What is wrong in the ledger, if anything.", answers={200: ref("Findings")}
    ),
    ("POST", "/dovetail/v1/audit"): Operation(
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
