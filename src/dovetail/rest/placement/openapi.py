"""OpenAPI part of Placement's door: its operations at the newest microversion."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.rest.openapi.operations import (
    AMOUNTS,
    CUT_SHORT,
    ERROR,
    NUMBER,
    TEXT,
    UUID,
    Document,
    DoorDescription,
    Operation,
    a_list,
    a_map,
    an_object,
    maybe,
    ref,
)
from dovetail.rest.placement import schemas
from dovetail.rest.query.schema import LIST_CANDIDATES, VersionedSchema
from dovetail.rest.query.versions import HEADER, NEWEST, SERVICE, shown
from dovetail.rest.server.http import JSON


def newest(versions: VersionedSchema) -> Document:
    return versions.at(NEWEST).schema


LINKS = a_list(an_object({"rel": TEXT, "href": TEXT}))
GENERATION: Document = {"resource_provider_generation": NUMBER}
INVENTORY = {
    "total": NUMBER,
    "reserved": NUMBER,
    "min_unit": NUMBER,
    "max_unit": NUMBER,
    "step_size": NUMBER,
    "allocation_ratio": {"type": "number"},
}
HELD = an_object({"resources": AMOUNTS, "generation": NUMBER}, "generation")

SCHEMAS: dict[str, Document] = {
    "Errors": an_object({"errors": a_list(ERROR)}),
    "Provider": an_object(
        {
            "uuid": UUID,
            "name": TEXT,
            "generation": NUMBER,
            "links": LINKS,
            "parent_provider_uuid": maybe(UUID),
            "root_provider_uuid": UUID,
        }
    ),
    "ResourceClass": an_object({"name": TEXT, "links": LINKS}),
    "Inventory": an_object({**INVENTORY, **GENERATION}),
    "Inventories": an_object({**GENERATION, "inventories": a_map(an_object(INVENTORY))}),
    "Traits": an_object({"traits": a_list(TEXT), **GENERATION}, "resource_provider_generation"),
    "Aggregates": an_object({"aggregates": a_list(TEXT), **GENERATION}),
    "AllocationRequest": an_object(
        {"allocations": a_map(HELD), "mappings": a_map(a_list(UUID)), "scores": a_map(NUMBER)},
        "scores",
    ),
    "ProviderSummary": an_object(
        {
            "resources": a_map(an_object({"capacity": NUMBER, "used": NUMBER})),
            "traits": a_list(TEXT),
            "parent_provider_uuid": maybe(UUID),
            "root_provider_uuid": UUID,
        }
    ),
    "Candidates": an_object(
        {
            "allocation_requests": a_list(ref("AllocationRequest")),
            "provider_summaries": a_map(ref("ProviderSummary")),
        }
    ),
}

CONSUMER = an_object(
    {
        "allocations": a_map(HELD),
        "project_id": TEXT,
        "user_id": TEXT,
        "consumer_generation": NUMBER,
        "consumer_type": TEXT,
    },
    "project_id",
    "user_id",
    "consumer_generation",
    "consumer_type",
)
HOLDERS = an_object(
    {
        "allocations": a_map(an_object({"resources": AMOUNTS, "consumer_generation": NUMBER})),
        **GENERATION,
    }
)

PROVIDER = "/resource_providers/{uuid}"
ONE_INVENTORY = f"{PROVIDER}/inventories/{{resource_class}}"

OPERATIONS: Mapping[tuple[str, str], Operation] = {
    ("GET", "/"): Operation(
        summary="Versions of the API that are spoken here.",
        answers={200: an_object({"versions": a_list({"type": "object"})})},
    ),
    ("GET", "/resource_classes"): Operation(
        summary="All resource classes.",
        answers={200: an_object({"resource_classes": a_list(ref("ResourceClass"))})},
    ),
    ("POST", "/resource_classes"): Operation(
        summary="Make a custom resource class.",
        body=schemas.RESOURCE_CLASS.schema,
        answers={201: None},
        refusals=(409,),
    ),
    ("GET", "/resource_classes/{name}"): Operation(
        summary="One resource class.", answers={200: ref("ResourceClass")}
    ),
    ("PUT", "/resource_classes/{name}"): Operation(
        summary="Make sure that a custom resource class exists.", answers={201: None, 204: None}
    ),
    ("DELETE", "/resource_classes/{name}"): Operation(
        summary="Remove a custom resource class.", answers={204: None}, refusals=(409,)
    ),
    ("GET", "/resource_providers"): Operation(
        summary="Providers, all or those that match.",
        query=newest(schemas.LIST_PROVIDERS),
        answers={200: an_object({"resource_providers": a_list(ref("Provider"))})},
    ),
    ("POST", "/resource_providers"): Operation(
        summary="Make a provider, a root or below another.",
        body=newest(schemas.POST_PROVIDER),
        answers={200: ref("Provider")},
        refusals=(409,),
    ),
    ("GET", PROVIDER): Operation(summary="One provider.", answers={200: ref("Provider")}),
    ("PUT", PROVIDER): Operation(
        summary="Rename a provider, or move it below another.",
        body=newest(schemas.PUT_PROVIDER),
        answers={200: ref("Provider")},
        refusals=(409,),
    ),
    ("DELETE", PROVIDER): Operation(
        summary="Remove a provider that nothing depends on.", answers={204: None}, refusals=(409,)
    ),
    ("GET", f"{PROVIDER}/inventories"): Operation(
        summary="What a provider has.", answers={200: ref("Inventories")}
    ),
    ("POST", f"{PROVIDER}/inventories"): Operation(
        summary="Add an inventory.",
        body=schemas.POST_INVENTORY.schema,
        answers={201: ref("Inventory")},
        refusals=(409,),
    ),
    ("PUT", f"{PROVIDER}/inventories"): Operation(
        summary="Replace all inventories.",
        body=schemas.PUT_INVENTORIES.schema,
        answers={200: ref("Inventories")},
        refusals=(409,),
    ),
    ("DELETE", f"{PROVIDER}/inventories"): Operation(
        summary="Remove all inventories.", answers={204: None}, refusals=(409,)
    ),
    ("GET", ONE_INVENTORY): Operation(
        summary="What a provider has of one class.", answers={200: ref("Inventory")}
    ),
    ("PUT", ONE_INVENTORY): Operation(
        summary="Change one inventory.",
        body=schemas.PUT_INVENTORY.schema,
        answers={200: ref("Inventory")},
        refusals=(409,),
    ),
    ("DELETE", ONE_INVENTORY): Operation(
        summary="Remove one inventory.", answers={204: None}, refusals=(409,)
    ),
    ("GET", f"{PROVIDER}/usages"): Operation(
        summary="What is in use of a provider.",
        answers={200: an_object({**GENERATION, "usages": AMOUNTS})},
    ),
    ("GET", f"{PROVIDER}/aggregates"): Operation(
        summary="Aggregates of a provider.", answers={200: ref("Aggregates")}
    ),
    ("PUT", f"{PROVIDER}/aggregates"): Operation(
        summary="Replace the aggregates of a provider.",
        body=newest(schemas.PUT_AGGREGATES),
        answers={200: ref("Aggregates")},
        refusals=(409,),
    ),
    ("GET", f"{PROVIDER}/allocations"): Operation(
        summary="Who holds what of a provider.", answers={200: HOLDERS}
    ),
    ("GET", f"{PROVIDER}/traits"): Operation(
        summary="Traits of a provider.", answers={200: ref("Traits")}
    ),
    ("PUT", f"{PROVIDER}/traits"): Operation(
        summary="Replace the traits of a provider.",
        body=schemas.PUT_PROVIDER_TRAITS.schema,
        answers={200: ref("Traits")},
        refusals=(409,),
    ),
    ("DELETE", f"{PROVIDER}/traits"): Operation(
        summary="Remove all traits of a provider.", answers={204: None}
    ),
    ("POST", "/allocations"): Operation(
        summary="Claims of several consumers, all or nothing.",
        body=newest(schemas.POST_ALLOCATIONS),
        answers={204: None},
        refusals=(409,),
    ),
    ("GET", "/allocations/{consumer_uuid}"): Operation(
        summary="What a consumer holds.", answers={200: CONSUMER}
    ),
    ("PUT", "/allocations/{consumer_uuid}"): Operation(
        summary="Claim: replace what a consumer holds.",
        body=newest(schemas.PUT_ALLOCATIONS),
        answers={204: None},
        refusals=(409,),
    ),
    ("DELETE", "/allocations/{consumer_uuid}"): Operation(
        summary="Release what a consumer holds.", answers={204: None}
    ),
    ("GET", "/allocation_candidates"): Operation(
        summary="Every place where a request fits.",
        query=newest(LIST_CANDIDATES),
        answers={200: ref("Candidates")},
        answer_headers=CUT_SHORT,
    ),
    ("GET", "/traits"): Operation(
        summary="Traits, all or those that match.",
        query=schemas.LIST_TRAITS.schema,
        answers={200: ref("Traits")},
    ),
    ("GET", "/traits/{name}"): Operation(summary="Whether a trait exists.", answers={204: None}),
    ("PUT", "/traits/{name}"): Operation(
        summary="Make sure that a custom trait exists.", answers={201: None, 204: None}
    ),
    ("DELETE", "/traits/{name}"): Operation(
        summary="Remove a custom trait.", answers={204: None}, refusals=(409,)
    ),
    ("GET", "/usages"): Operation(
        summary="What a project uses, by type of consumer.",
        query=newest(schemas.TOTAL_USAGES),
        answers={200: an_object({"usages": a_map(AMOUNTS)})},
    ),
    ("POST", "/reshaper"): Operation(
        summary="Move inventories and what is held of them, all or nothing.",
        body=newest(schemas.RESHAPE),
        answers={204: None},
        refusals=(409,),
    ),
}

NAME: Document = {"type": "string", "pattern": "^[A-Z0-9_]+$"}
PLAIN = {"schema": TEXT}

DESCRIPTION = DoorDescription(
    about="OpenStack Placement's API at its newest microversion",
    note="Older microversions are spoken too: GET / lists them.",
    operations=OPERATIONS,
    schemas=SCHEMAS,
    errors={JSON: {"schema": ref("Errors")}, "text/html": PLAIN, "text/plain": PLAIN},
    path_parameters={"uuid": UUID, "consumer_uuid": UUID, "resource_class": NAME, "name": NAME},
    header_parameters=(
        {
            "name": HEADER,
            "in": "header",
            "required": True,
            "schema": {
                "type": "string",
                "enum": [f"{SERVICE} {shown(NEWEST)}", f"{SERVICE} latest"],
            },
        },
    ),
)
