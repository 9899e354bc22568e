"""OpenAPI document: composed of the doors' descriptions, an operation for each of their routes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from dovetail import __version__
from dovetail.rest.openapi.operations import TEXT, Document, DoorDescription, Operation, ref
from dovetail.rest.server.door import Door, by_prefix, door_at
from dovetail.rest.server.routing import Endpoint

VERSION_SEGMENT = re.compile(r"v\d+")


def document(doors: Sequence[Door], server: Door) -> Document:
    """`server` is the door of the server itself."""
    described = [door for door in doors if door.describe is not None]
    everything = (*described, server)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Dovetail",
            "version": __version__,
            "description": about([part_of(door) for door in described]),
        },
        "paths": {
            path: methods for door in everything for path, methods in paths(door, everything)
        },
        "components": {
            "schemas": {
                name: schema
                for door in everything
                for name, schema in schemas_of(part_of(door)).items()
            },
            "securitySchemes": {
                "token": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
                "bearer": {"type": "http", "scheme": "bearer"},
            },
        },
        "security": [{"token": []}, {"bearer": []}],
    }


def part_of(door: Door) -> DoorDescription:
    assert door.describe is not None
    return door.describe()


def about(parts: Sequence[DoorDescription]) -> str:
    *others, last = [part.about for part in parts] or [""]
    apis = f"{', '.join(others)}, and {last}" if others else last
    return " ".join([f"{apis}.", *(part.note for part in parts if part.note)])


def paths(door: Door, everything: Sequence[Door]) -> Iterator[tuple[str, Document]]:
    part = part_of(door)
    for below, methods in door.routes.items():
        path = f"{door.prefix}{below}"
        # What the server itself answers is refused by whichever door has the path.
        at = door_at(by_prefix(everything), path)
        yield (
            path,
            {
                method.lower(): operation_document(
                    part.operations.get((method, below)) or assumed(endpoint),
                    path,
                    endpoint,
                    part,
                    at,
                )
                for method, endpoint in methods.items()
            },
        )


def schemas_of(part: DoorDescription) -> dict[str, Document]:
    _, components = msgspec.json.schema_components(
        list(part.structs.values()), ref_template="#/components/schemas/{name}"
    )
    names = {kind.__name__: name for name, kind in part.structs.items()}
    named: dict[str, Document] = {}
    for kind, schema in components.items():
        name = names.get(kind, kind)
        named[name] = {**with_refs(schema, names), "title": name}
    return {**named, **part.schemas}


def with_refs(schema: Document, names: Mapping[str, str]) -> Document:
    """The schema, referring to others by the names that are published."""
    text = msgspec.json.encode(schema).decode()
    for kind, name in names.items():
        text = text.replace(f'"{ref(kind)["$ref"]}"', f'"{ref(name)["$ref"]}"')
    return msgspec.json.decode(text, type=Document)


def operation_document(
    operation: Operation, path: str, endpoint: Endpoint, part: DoorDescription, at: Door
) -> Document:
    """`at` is the door that refuses requests for the path."""
    found: Document = {
        "operationId": operation_id(endpoint),
        "summary": operation.summary,
        "tags": [tag_of(path.removeprefix(at.prefix))],
        "parameters": list(parameters(path, endpoint, operation, part)),
        "responses": dict(responses(path, endpoint, operation, part_of(at).errors)),
    }
    if operation.body is not None:
        bodies = {operation.body_type: operation.body, **operation.more_bodies}
        content = {media: {"schema": schema} for media, schema in bodies.items()}
        found["requestBody"] = {"required": True, "content": content}
    if endpoint.public:
        found["security"] = [{}]
    return found


def tag_of(path: str) -> str:
    """The noun of a path below its prefix; before it may stand a version."""
    nouns = [part for part in path.split("/") if part and not VERSION_SEGMENT.fullmatch(part)]
    return nouns[0] if nouns else "versions"


def assumed(endpoint: Endpoint) -> Operation:
    """For a route that nobody described: at least it is there."""
    words = inspect.getdoc(endpoint.handler) or inspect.getdoc(inspect.getmodule(endpoint.handler))
    return Operation(summary=(words or "").partition("\n")[0], answers={200: {}})


def operation_id(endpoint: Endpoint) -> str:
    module = endpoint.handler.__module__.rpartition(".")[2]
    return f"{module}.{getattr(endpoint.handler, '__name__', 'call')}"


def parameters(
    path: str, endpoint: Endpoint, operation: Operation, part: DoorDescription
) -> Iterator[Document]:
    for name in re.findall(r"{(\w+)}", path):
        yield {"name": name, "in": "path", "required": True, "schema": part.path_parameters[name]}
    if not endpoint.public:
        yield from part.header_parameters
    for name, schema in operation.headers.items():
        yield {"name": name, "in": "header", "required": False, "schema": schema}
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
    path: str, endpoint: Endpoint, operation: Operation, errors: Document
) -> Iterator[tuple[str, Document]]:
    for status, schema in operation.answers.items():
        shown = {} if schema is None else {operation.answer_type: schema, **operation.more_answers}
        found = answer(status, {media: {"schema": one} for media, one in shown.items()})
        headers = {"headers": dict(operation.answer_headers)} if operation.answer_headers else {}
        yield str(status), {**found, **headers}
    for status in sorted(refusals(path, endpoint, operation)):
        plain = operation.refusal_types.get(status)
        content = {plain: {"schema": TEXT}} if plain else errors
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
