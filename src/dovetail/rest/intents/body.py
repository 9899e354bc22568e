"""Bodies of requests on documents: JSON, or a form with the document and a file beside it.

EmptyBody        400     nothing was sent
NoJson           422     what was sent cannot be read as JSON
BadForm          422     what was sent cannot be read as a form
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import orjson

from dovetail.core.errors import Malformed
from dovetail.intents.documents.errors import MistypedDocument, Violation, broken_rule
from dovetail.rest.intents.multipart import FORM, BadForm, read_form
from dovetail.rest.server.errors import HttpError
from dovetail.rest.server.http import JSON, Call
from dovetail.rest.server.pieces.reading import MalformedJson, read_json_in_thread

METADATA_PART, FILE_PART = "metadata", "file"
QUICKLY_READ_BYTES = 64 * 2**10
"""More is read in a thread of its own, while others are served."""
DEEPEST = 64
"""Levels of a document; Kubernetes' objects in manifests and snapshots have fewer."""


class EmptyBody(Malformed):
    def __init__(self) -> None:
        super().__init__("the body is empty")


class NoJson(Malformed):
    """Text that is no JSON."""


class SentBody(msgspec.Struct, frozen=True):
    document: dict[str, Any]
    file: bytes | None

    def content(self) -> tuple[bytes, bytes]:
        """What is the same whenever the same is sent: boundaries and white space are not."""
        return orjson.dumps(self.document, option=orjson.OPT_SORT_KEYS), self.file or b""


async def read_body(call: Call, *, takes_file: bool) -> SentBody:
    content_type = call.request.headers.get("content-type", "")
    media = content_type.partition(";")[0].strip().lower()
    is_empty = call.request.headers.get("content-length") == "0"
    if not is_empty and (media != FORM or not takes_file):
        refuse_media(media, takes_file, is_emco=call.backend.intent_settings.emco_status_codes)
    raw = await uploaded(call) if takes_file else call.body
    if len(raw) <= QUICKLY_READ_BYTES:
        return body_in(content_type, media, raw)
    return await asyncio.to_thread(body_in, content_type, media, raw)


def refuse_media(media: str, takes_file: bool, *, is_emco: bool) -> None:
    if is_emco:
        if takes_file and media != JSON:
            raise BadForm("request Content-Type isn't multipart/form-data")
    elif media not in (JSON, ""):
        expected = f"{JSON} or {FORM}" if takes_file else JSON
        raise HttpError(415, f"The media type {media} is not supported, use {expected}")


def body_in(content_type: str, media: str, raw: bytes) -> SentBody:
    if media != FORM:
        return SentBody(document_in(raw), None)
    parts = read_form(content_type, raw)
    return SentBody(document_in(parts.get(METADATA_PART, b"")), parts.get(FILE_PART))


async def uploaded(call: Call) -> bytes:
    """The body of a request that may be larger than others."""
    limit = call.backend.intent_settings.upload_bytes
    parts, size = [], 0
    async for part in call.request.stream():
        size += len(part)
        if size > limit:
            raise HttpError(413, f"A request with a file may have {limit} bytes.")
        parts.append(part)
    return b"".join(parts)


def document_in(body: bytes) -> dict[str, Any]:
    """Raises EmptyBody, NoJson, BadDocument."""
    if not body.strip():
        raise EmptyBody
    try:
        document = read_json_in_thread(body)
    except MalformedJson as error:
        raise NoJson(f"the body is no JSON: {error}") from error
    if document is None:
        document = {}
    if not isinstance(document, dict):
        told = "an object is expected"
        raise MistypedDocument([Violation(field="$", message=told, emco=told)])
    refuse_hostile(document)
    return document


def refuse_hostile(document: dict[str, Any]) -> None:
    """What neither database can hold, and what is nested too deeply to be written again."""
    level: list[Any] = [document]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for each in level:
            for part in parts_of(each):
                if isinstance(part, str):
                    if "\0" in part:
                        raise broken_rule("$", "NUL characters are not allowed")
                else:
                    below.append(part)
        if not below:
            return
        level = below
    raise broken_rule("$", f"nested more than {DEEPEST} levels deep")


def parts_of(value: Any) -> Iterator[Any]:
    """Texts, lists and objects directly in it."""
    if isinstance(value, dict):
        yield from value
        value = value.values()
    yield from (each for each in value if isinstance(each, str | list | dict))
