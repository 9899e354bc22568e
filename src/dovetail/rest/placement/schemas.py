"""JSON Schemas of the Placement API's bodies and listings, by the microversion that brought them.

Patterns and bounds are the API's contract; so is the text of a refusal, which quotes the schema.
"""

from __future__ import annotations

from typing import Any

from dovetail.core.inventory import MAX_INT
from dovetail.rest.query.schema import STRING, SUFFIX, Document, VersionedSchema, closed
from dovetail.rest.server.validation import Schema

NAME = "^[A-Z0-9_]+$"
CUSTOM_NAME = "^CUSTOM_[A-Z0-9_]+$"
UUID = "^[0-9a-fA-F-]{36}$"
LARGEST_RATIO = 3.40282e38

INTEGER: Document = {"type": "integer"}
UUID_STRING: Document = {"type": "string", "format": "uuid"}
OWNER: Document = {"type": "string", "minLength": 1, "maxLength": 255}
GENERATION: Document = {"type": ["integer", "null"]}


def keyed(pattern: str, value: Document, at_least: int = 0, **more: Any) -> Document:
    """An object whose keys all match a pattern."""
    return {
        "type": "object",
        "minProperties": at_least,
        "patternProperties": {pattern: value},
        "additionalProperties": False,
        **more,
    }


# -- resource providers --------------------------------------------------------------------------

PROVIDER = {"name": {"type": "string", "maxLength": 200}}
PARENT = {"parent_provider_uuid": {"anyOf": [UUID_STRING, {"type": "null"}]}}
POST_PROVIDER = VersionedSchema(
    {
        0: closed({**PROVIDER, "uuid": UUID_STRING}, ("name",)),
        14: closed({**PROVIDER, "uuid": UUID_STRING, **PARENT}, ("name",)),
    }
)
PUT_PROVIDER = VersionedSchema(
    {0: closed(PROVIDER, ("name",)), 14: closed({**PROVIDER, **PARENT}, ("name",))}
)
FILTERS_1_0 = {"name": STRING, "uuid": UUID_STRING}
FILTERS_1_3 = {**FILTERS_1_0, "member_of": STRING}
FILTERS_1_4 = {**FILTERS_1_3, "resources": STRING}
FILTERS_1_14 = {**FILTERS_1_4, "in_tree": UUID_STRING}
LIST_PROVIDERS = VersionedSchema(
    {
        0: closed(FILTERS_1_0),
        3: closed(FILTERS_1_3),
        4: closed(FILTERS_1_4),
        14: closed(FILTERS_1_14),
        18: closed({**FILTERS_1_14, "required": STRING}),
    }
)

# -- inventories ---------------------------------------------------------------------------------


def whole(minimum: int) -> Document:
    return {"type": "integer", "maximum": MAX_INT, "minimum": minimum}


INVENTORY_FIELDS = {
    "resource_provider_generation": INTEGER,
    "total": whole(1),
    "reserved": whole(0),
    "min_unit": whole(1),
    "max_unit": whole(1),
    "step_size": whole(1),
    "allocation_ratio": {"type": "number", "maximum": LARGEST_RATIO},
}
PUT_INVENTORY = Schema(closed(INVENTORY_FIELDS, ("total", "resource_provider_generation")))
POST_INVENTORY = Schema(
    closed(
        {**INVENTORY_FIELDS, "resource_class": {"type": "string", "pattern": NAME}},
        ("total", "resource_class"),
    )
)
INVENTORIES = closed(
    {
        "resource_provider_generation": INTEGER,
        "inventories": keyed(NAME, closed(INVENTORY_FIELDS, ("total",))),
    },
    ("resource_provider_generation", "inventories"),
)
PUT_INVENTORIES = Schema(INVENTORIES)

# -- aggregates, traits, classes, usages ---------------------------------------------------------

AGGREGATES = {"type": "array", "items": UUID_STRING, "uniqueItems": True}
PUT_AGGREGATES = VersionedSchema(
    {
        0: AGGREGATES,
        19: closed(
            {"aggregates": AGGREGATES, "resource_provider_generation": INTEGER},
            ("aggregates", "resource_provider_generation"),
        ),
    },
    unique=lambda document: document["aggregates"] if isinstance(document, dict) else document,
)
CUSTOM_TRAIT = Schema({**OWNER, "pattern": CUSTOM_NAME})
PUT_PROVIDER_TRAITS = Schema(
    closed(
        {
            "traits": {"type": "array", "items": OWNER},
            "resource_provider_generation": INTEGER,
        },
        ("traits", "resource_provider_generation"),
    )
)
LIST_TRAITS = Schema(closed({"name": STRING, "associated": STRING}))
RESOURCE_CLASS = Schema(
    closed({"name": {"type": "string", "pattern": CUSTOM_NAME, "maxLength": 255}}, ("name",))
)
TOTAL_USAGES = VersionedSchema(
    {
        0: closed({"project_id": OWNER, "user_id": OWNER}, ("project_id",)),
        38: closed(
            {
                "project_id": OWNER,
                "user_id": OWNER,
                "consumer_type": {**OWNER, "pattern": f"{NAME}|^all|^unknown$"},
            },
            ("project_id",),
        ),
    }
)

# -- allocations ---------------------------------------------------------------------------------

RESOURCES = keyed(NAME, {"type": "integer", "minimum": 1}, 1)
ALLOCATION_LIST: Document = {
    "type": "array",
    "minItems": 1,
    "items": closed(
        {
            "resource_provider": closed({"uuid": UUID_STRING}, ("uuid",)),
            "resources": RESOURCES,
        },
        ("resource_provider", "resources"),
    ),
}
OWNERS = {"project_id": OWNER, "user_id": OWNER}
MAPPINGS: Document = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {SUFFIX: {"type": "array", "minItems": 1, "items": UUID_STRING}},
}
CONSUMER_TYPE = {**OWNER, "pattern": NAME}


def allocations(at_least: int, *extra: str) -> Document:
    """The allocations of a consumer by provider, with the fields that later versions added."""
    by_provider = keyed(
        UUID, closed({"generation": INTEGER, "resources": RESOURCES}, ("resources",)), at_least
    )
    optional = {
        "consumer_generation": GENERATION,
        "mappings": MAPPINGS,
        "consumer_type": CONSUMER_TYPE,
    }
    needed = [name for name in extra if name != "mappings"]
    return closed(
        {"allocations": by_provider, **OWNERS, **{name: optional[name] for name in extra}},
        ("allocations", "project_id", "user_id", *needed),
    )


ALLOCATIONS_1_28 = allocations(0, "consumer_generation")
ALLOCATIONS_1_34 = allocations(0, "consumer_generation", "mappings")
ALLOCATIONS_1_38 = allocations(0, "consumer_generation", "mappings", "consumer_type")
PUT_ALLOCATIONS = VersionedSchema(
    {
        0: closed({"allocations": ALLOCATION_LIST}, ("allocations",)),
        8: closed(
            {"allocations": ALLOCATION_LIST, **OWNERS}, ("allocations", "project_id", "user_id")
        ),
        12: allocations(1),
        28: ALLOCATIONS_1_28,
        34: ALLOCATIONS_1_34,
        38: ALLOCATIONS_1_38,
    }
)
POST_ALLOCATIONS = VersionedSchema(
    {
        13: keyed(UUID, allocations(0), 1),
        28: keyed(UUID, ALLOCATIONS_1_28, 1),
        34: keyed(UUID, ALLOCATIONS_1_34, 1),
        38: keyed(UUID, ALLOCATIONS_1_38, 1),
    }
)


def reshaping(claim: Document) -> Document:
    return closed(
        {"inventories": keyed(UUID, INVENTORIES, 1), "allocations": keyed(UUID, claim)},
        ("inventories", "allocations"),
    )


RESHAPE = VersionedSchema(
    {
        30: reshaping(ALLOCATIONS_1_28),
        34: reshaping(ALLOCATIONS_1_34),
        38: reshaping(ALLOCATIONS_1_38),
    }
)
