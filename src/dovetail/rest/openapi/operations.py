"""How an operation is described: what the route table and the schemas do not say by themselves."""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.rest.server.http import JSON

Document = dict[str, Any]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path."""

    summary: str
    query: Document = {}
    """A JSON Schema of the query string, as an object."""
    body: Document | None = None
    body_type: str = JSON
    answers: dict[int, Document | None]
    """JSON Schemas of what is answered on success; None where there is no body."""
    answer_type: str = JSON
    refusals: tuple[int, ...] = ()
    """Status codes beyond those that follow from the route."""
    refusal_types: dict[int, str] = {}
    """Where a refusal is not in the form of all others."""


def an_object(properties: Document, *optional: str, **more: Any) -> Document:
    """Members that are always there, but for the optional ones."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, **more}


def a_list(items: Document) -> Document:
    return {"type": "array", "items": items}


def a_map(values: Document) -> Document:
    return {"type": "object", "additionalProperties": values}


def maybe(schema: Document) -> Document:
    return {"anyOf": [schema, {"type": "null"}]}


def ref(name: str) -> Document:
    return {"$ref": f"#/components/schemas/{name}"}


TEXT: Document = {"type": "string"}
NUMBER: Document = {"type": "integer"}
YES_OR_NO: Document = {"type": "boolean"}
UUID: Document = {"type": "string", "format": "uuid"}
AMOUNTS = a_map(NUMBER)
