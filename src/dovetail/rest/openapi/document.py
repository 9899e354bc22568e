"""Puts the description together: one operation for each entry of the route tables."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

import msgspec

from dovetail import __version__
from dovetail.rest.openapi import own, placement
from dovetail.rest.openapi.operations import NUMBER, TEXT, UUID, Document, Operation, an_object
from dovetail.rest.placement.versions import HEADER, NEWEST, SERVICE, shown
from dovetail.rest.server.http import JSON
from dovetail.rest.server.routing import Endpoint, Routes

OPERATIONS: Mapping[tuple[str, str], Operation] = {**placement.OPERATIONS, **own.OPERATIONS}
OWN_PREFIX = "/dovetail/"
PROBLEM = "application/problem+json"
DESCRIPTION = (
    "OpenStack Placement's API at its newest microversion, and Dovetail's own. Older microversions "
    "are spoken too: GET / lists them."
)
ERROR = an_object({"status": NUMBER, "title": TEXT, "detail": TEXT, "request_id": TEXT})
ERRORS: dict[str, Document] = {
    "Errors": an_object({"errors": {"type": "array", "items": ERROR}}),
    "Problem": an_object({**ERROR["properties"], "type": TEXT}),
}
PARAMETERS: dict[str, Document] = {
    "uuid": UUID,
    "consumer_uuid": UUID,
    "resource_class": {"type": "string", "pattern": "^[A-Z0-9_]+$"},
    "name": {"type": "string", "pattern": "^[A-Z0-9_]+$"},
    "class_name": {"type": "string", "pattern": "^[a-z0-9.-]+$"},
}
VERSION: Document = {
    "name": HEADER,
    "in": "header",
    "required": True,
    "schema": {"type": "string", "enum": [f"{SERVICE} {shown(NEWEST)}", f"{SERVICE} latest"]},
}


def document(routes: Routes) -> Document:
    return {
        "openapi": "3.1.0",
        "info": {"title": "Dovetail", "version": __version__, "description": DESCRIPTION},
        "paths": {
            path: {
                method.lower(): described(method, path, endpoint)
                for method, endpoint in methods.items()
            }
            for path, methods in routes.items()
        },
        "components": {
            "schemas": {**struct_schemas(), **ERRORS, **placement.SCHEMAS, **own.SCHEMAS},
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{"token": []}, {"bearer": []}],
    }


def struct_schemas() -> dict[str, Document]:
    _, components = msgspec.json.schema_components(
        own.STRUCTS, ref_template="#/components/schemas/{name}"
    )
    return components


def described(method: str, path: str, endpoint: Endpoint) -> Document:
    operation = OPERATIONS.get((method, path)) or assumed(endpoint)
    found: Document = {
        "operationId": operation_id(endpoint),
        "summary": operation.summary,
        "tags": [path.removeprefix("/dovetail/v1").split("/")[1] or "versions"],
        "parameters": list(parameters(path, endpoint, operation)),
        "responses": dict(responses(path, endpoint, operation)),
    }
    if operation.body is not None:
        content = {operation.body_type: {"schema": operation.body}}
        found["requestBody"] = {"required": True, "content": content}
    if endpoint.public:
        found["security"] = [{}]
    return found


def assumed(endpoint: Endpoint) -> Operation:
    """For a route that nobody described: at least it is there."""
    words = inspect.getdoc(endpoint.handler) or inspect.getdoc(inspect.getmodule(endpoint.handler))
    return Operation(summary=(words or "").partition("\n")[0], answers={200: {}})


def operation_id(endpoint: Endpoint) -> str:
    module = endpoint.handler.__module__.rpartition(".")[2]
    return f"{module}.{getattr(endpoint.handler, '__name__', 'call')}"


def parameters(path: str, endpoint: Endpoint, operation: Operation) -> Iterator[Document]:
    for name in re.findall(r"{(\w+)}", path):
        yield {"name": name, "in": "path", "required": True, "schema": PARAMETERS[name]}
    if not endpoint.public and not path.startswith(OWN_PREFIX):
        yield VERSION
    required = operation.query.get("required", ())
    for name, schema in operation.query.get("properties", {}).items():
        yield {"name": name, "in": "query", "required": name in required, "schema": schema}
    patterns = operation.query.get("patternProperties")
    if patterns:
        # Names with a suffix of the client's choice: an object spread over the query string.
        schema = {"type": "object", "patternProperties": patterns, "additionalProperties": False}
        yield {
            "name": "groups",
            "in": "query",
            "style": "form",
            "explode": True,
            "schema": schema,
            "example": {"resources": "VCPU:1", "resources_NET": "SRIOV_NET_VF:1"},
        }


def responses(
    path: str, endpoint: Endpoint, operation: Operation
) -> Iterator[tuple[str, Document]]:
    for status, schema in operation.answers.items():
        content = {} if schema is None else {operation.answer_type: {"schema": schema}}
        yield str(status), answer(status, content)
    is_own = path.startswith(OWN_PREFIX)
    for status in sorted(refusals(path, endpoint, operation)):
        plain = operation.refusal_types.get(status)
        content = {plain: {"schema": TEXT}} if plain else error_content(is_own=is_own)
        yield str(status), answer(status, content)


def answer(status: int, content: Document) -> Document:
    found: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    return {**found, "content": content} if content else found


def refusals(path: str, endpoint: Endpoint, operation: Operation) -> set[int]:
    """Status codes of all that can go wrong with a request like this."""
    found = {400, 406, 413, 414, 503, *operation.refusals}
    if not endpoint.public:
        found |= {401, 429}
    if endpoint.action is not None:
        found.add(403)
    if endpoint.takes_json:
        found.add(415)
    if "{" in path:
        found.add(404)
    return found


def error_content(*, is_own: bool) -> Document:
    if is_own:
        return {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    text = {"schema": TEXT}
    errors = {"schema": {"$ref": "#/components/schemas/Errors"}}
    return {JSON: errors, "text/html": text, "text/plain": text}
