"""JSON Schema validation, twice: fast to decide, and in Python's words to explain.

Clients of Placement match the text of the `jsonschema` package. The Rust validator says in
microseconds whether a document is good; only a bad one is looked at again to word the refusal.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from dovetail.aio.pace import Pace
from dovetail.rest.server.errors import bad_request
from dovetail.rest.server.http import Call, Query
from dovetail.rest.server.pieces.reading import LONG_BYTES, MalformedJson, read_json
from dovetail.rest.server.pieces.slices import CannotSlice, repeats, slices

if TYPE_CHECKING:
    import jsonschema


LONG_BODY = 8 * 2**10
MANY_PARAMETERS = 200
MOST_WORDS = 500
"""Choosing and printing the best of many errors takes seconds for a body of megabytes."""


USUAL_UUID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_uuid_like(value: object) -> bool:
    """Any writing of a UUID: with or without dashes, in braces, upper case."""
    if not isinstance(value, str):
        return False
    if USUAL_UUID.fullmatch(value):
        return True
    bare = value.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "").lower()
    try:
        return uuid.UUID(value).hex == bare
    except ValueError:
        return False


def refuse_nul(body: bytes) -> None:
    """PostgreSQL cannot hold NUL characters, and SQLite had better not."""
    if b"\\u0000" in body:
        raise bad_request("JSON does not validate: NUL characters are not allowed")


class Schema:
    """One JSON Schema, ready to check documents."""

    def __init__(
        self, schema: dict[str, Any], unique: Callable[[Any], list[Any]] | None = None
    ) -> None:
        """`unique` is the list in a document of which the schema says that its items differ."""
        self.schema, self._unique = schema, unique

    # Made when first needed: there are dozens, and a client speaks one version.
    @cached_property
    def _fast(self) -> jsonschema_rs.Draft202012Validator:
        return jsonschema_rs.Draft202012Validator(
            self.schema, formats={"uuid": is_uuid_like}, validate_formats=True
        )

    @cached_property
    def _brief(self) -> jsonschema_rs.Draft202012Validator:
        """Repeats nothing of the document: a text in it may have megabytes."""
        return jsonschema_rs.Draft202012Validator(
            self.schema, formats={"uuid": is_uuid_like}, validate_formats=True, mask="[value]"
        )

    @cached_property
    def _slow(self) -> jsonschema.Draft202012Validator:
        import jsonschema

        formats = jsonschema.FormatChecker(formats=())
        formats.checks("uuid")(is_uuid_like)
        return jsonschema.Draft202012Validator(self.schema, format_checker=formats)

    def complaint(self, document: Any, *, long: bool = False) -> str | None:
        """What is wrong with a document, if anything; of a long one only the first thing found."""
        if self._fast.is_valid(document):
            return None
        if long:
            first = next(iter(self._brief.iter_errors(document)))
            # Positions in lists are those in a slice, which nobody knows.
            path = "/".join(part for part in first.instance_path if isinstance(part, str))
            return f"{first.message[:MOST_WORDS]} at {path}"
        from jsonschema.exceptions import best_match

        try:
            error = best_match(self._slow.iter_errors(document))
            # Python's patterns let a newline at the end pass; ours do not.
            return "a name ends in a newline" if error is None else str(error)
        except RecursionError:
            return "the document is nested too deeply to tell what is wrong with it"

    async def body(self, call: Call) -> Any:
        """The body of a request, decoded and checked; in pieces, if it is long."""
        refuse_nul(call.body)
        try:
            document = await read_json(call.body)
        except MalformedJson as error:
            raise bad_request(f"Malformed JSON: {error}") from error
        if len(call.body) > LONG_BYTES:
            await self._check_in_pieces(document)
        else:
            self.check(document, long=len(call.body) > LONG_BODY)
        return document

    async def _check_in_pieces(self, document: Any) -> None:
        pace = Pace()
        try:
            for each in slices(document):
                self.check(each, long=True)
                await pace.give_way()
        except CannotSlice as error:
            raise bad_request("JSON does not validate: it is nested too deeply") from error
        if self._unique is not None and repeats(self._unique(document)):
            raise bad_request("JSON does not validate: it has non-unique elements")

    def check(self, document: Any, *, long: bool = False) -> None:
        complaint = self.complaint(document, long=long)
        if complaint is not None:
            raise bad_request(f"JSON does not validate: {complaint}")

    def query(self, query: Query) -> None:
        complaint = self.complaint(query.last, long=len(query.pairs) > MANY_PARAMETERS)
        if complaint is not None:
            raise bad_request(f"Invalid query string parameters: {complaint}")
