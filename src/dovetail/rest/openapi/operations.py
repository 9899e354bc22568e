"""Words for OpenAPI descriptions: what route tables and schemas do not say by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dovetail.rest.server.headers import KEY, LONGEST_KEY
from dovetail.rest.server.http import JSON

Document = dict[str, Any]

IDEMPOTENT: Document = {
    KEY: {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[!-~]+$"}
}
"""The header of requests that may be sent again."""

CUT_SHORT: Document = {
    "Dovetail-Unranked-Trees": {
        "description": "Trees that there was no time to rank; they may hold better candidates. "
        "Absent if all were ranked.",
        "schema": {"type": "integer", "minimum": 1},
    }
}
"""The header of answers whose ranking ran out of time."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One method of one path."""

    summary: str
    query: Document = {}
    """A JSON Schema of the query string, as an object."""
    body: Document | None = None
    body_type: str = JSON
    more_bodies: Mapping[str, Document] = {}
    """The body in other media types, where there is a choice."""
    answers: dict[int, Document | None]
    """JSON Schemas of what is answered on success; None where there is no body."""
    answer_type: str = JSON
    more_answers: Mapping[str, Document] = {}
    """What is answered in other media types, to those who ask for them."""
    headers: Mapping[str, Document] = {}
    """What a request may say in its head."""
    answer_headers: Mapping[str, Document] = {}
    """What an answer on success may say in its head: OpenAPI's Header Objects by name."""
    refusals: tuple[int, ...] = ()
    """Status codes beyond those that follow from the route."""
    refusal_types: dict[int, str] = {}
    """Where a refusal is not in the form of all others."""


class DoorDescription(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a door in the description of the server."""

    about: str
    """What API it is, in half a sentence."""
    note: str = ""
    """What else clients should know, in a sentence."""
    operations: Mapping[tuple[str, str], Operation]
    """By method and path below the door's prefix."""
    errors: Document
    """What a refusal looks like: schemas by media type."""
    schemas: Mapping[str, Document] = {}
    structs: Mapping[str, type] = {}
    """Types that bodies are read into or written from, by the name of their schema."""
    path_parameters: Mapping[str, Document] = {}
    """Schemas of the placeholders in its routes."""
    header_parameters: Sequence[Document] = ()
    """What every request but public ones sends in its head."""


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
ERROR = an_object({"status": NUMBER, "title": TEXT, "detail": TEXT, "request_id": TEXT})
"""What every shape of errors has."""
