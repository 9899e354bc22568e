"""Handlers of documents: collections of a kind below a parent, and single documents."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode

import orjson

from dovetail.intents.documents.errors import Violation
from dovetail.intents.documents.kinds import DocumentKind
from dovetail.intents.documents.shapes import DocumentFindings
from dovetail.ledger import Transaction
from dovetail.ledger.intents import objects
from dovetail.ledger.intents.objects import IntentObject
from dovetail.rest.intents import emco, listings
from dovetail.rest.intents.body import SentBody, read_body
from dovetail.rest.intents.calls import is_emco, once, parent_of, path_of, refuse_unknown
from dovetail.rest.intents.dialects import NameMismatch
from dovetail.rest.intents.files import brought, shown_file
from dovetail.rest.intents.multipart import FORM, FormPart, write_form
from dovetail.rest.server.errors import HttpError, bad_request
from dovetail.rest.server.headers import KEY, accepts_json, key_of
from dovetail.rest.server.http import JSON, Call, Reply
from dovetail.rest.server.pieces.writing import LongList
from dovetail.rest.server.routing import QUERY
from dovetail.service.intents import objects as store
from dovetail.service.intents.objects import ObjectNotFound, SentDocument

Json = dict[str, Any]

OfKind = Callable[[DocumentKind, Call], Awaitable[Reply]]

OCTETS = "application/octet-stream"
MOST_LISTED = 1000


# -- what is sent --------------------------------------------------------------------------------


async def create(kind: DocumentKind, call: Call) -> Reply:
    refuse_unknown(call, ())
    body = await read_body(call, takes_file=bool(kind.file))
    parent = parent_of(kind, call)
    sent = await asyncio.to_thread(sent_document, kind, call, body, parent)
    key = key_of(call, *body.content()) if KEY in call.request.headers else None
    hooks = call.backend.intent_hooks

    def write(tx: Transaction) -> Json:
        store.create(tx, hooks, sent)
        return shown(kind, sent.document, call)

    reply = await once(call, key, write)
    at = call.request.scope["path"]
    reply.headers["location"] = f"{'/v2' if at.startswith('/v2/') else ''}/{sent.path}"
    return reply


async def replace(kind: DocumentKind, call: Call) -> Reply:
    refuse_unknown(call, ())
    body = await read_body(call, takes_file=bool(kind.file))
    path, parent = path_of(kind, call), parent_of(kind, call)
    sent = await asyncio.to_thread(sent_document, kind, call, body, parent)
    if sent.path != path:
        if is_emco(call) and emco.answers_of(kind).mismatch_last:
            await call.read(lambda tx: store.refuse_without_parent(tx, kind, parent))
        told = "is not the name in the address"
        raise NameMismatch([Violation(field="metadata.name", message=told, emco=emco.MISMATCH)])
    hooks, by_emco = call.backend.intent_hooks, is_emco(call)
    made = await call.write(lambda tx: store.replace(tx, hooks, sent, may_create=by_emco))
    answers = emco.answers_of(kind)
    status = (answers.made_by_put if made else answers.replaced) if by_emco else 200
    return call.json(shown(kind, sent.document, call), status)


def sent_document(
    kind: DocumentKind, call: Call, body: SentBody, parent: str | None
) -> SentDocument:
    """What was sent, checked. Raises BadDocument, BadManifest."""
    findings = DocumentFindings(is_emco=is_emco(call))
    document = kind.shape.read(body.document, "", findings)
    findings.raise_any()
    files = brought(kind, document, body.file, is_emco=findings.is_emco)
    return SentDocument(
        kind=kind,
        path=kind.path_below(parent, kind.names(document)),
        parent=parent,
        document=files.document,
        files=files.kept,
        passing=files.passing,
    )


# -- what is shown -------------------------------------------------------------------------------


def shown(kind: DocumentKind, document: Json, call: Call) -> Json:
    return emco.shown(kind, document) if is_emco(call) else document


def with_children(tx: Transaction, found: IntentObject, call: Call) -> Json:
    """A document as it is answered; a hardware intent shows its consumers."""
    document = store.document_of(found)
    if found.kind == "hpa-intent" and not is_emco(call):
        consumers = store.children_of(tx, found, "hpa-consumer")
        document["spec"] = {**document["spec"], "resourceConsumers": consumers}
    return document


async def show(kind: DocumentKind, call: Call) -> Reply:
    refuse_unknown(call, ("key",) if kind.name == "cluster-kv" else ())
    path = path_of(kind, call)

    def read(tx: Transaction) -> tuple[Json, bytes | None]:
        found = store.get(tx, kind, path)
        content = objects.file(tx, path, kind.file) if kind.file else None
        return with_children(tx, found, call), content

    document, content = await call.read(read)
    asked = call.query.get("key")
    if asked is not None:
        return call.json(listings.value_of(document, asked))
    answer = shown(kind, document, call)
    accept = call.request.headers.get("accept", "")
    media = accept.partition(";")[0].strip().lower()
    if kind.file and media == FORM:
        parts = [FormPart(name="metadata", content=orjson.dumps(answer), media_type=JSON)]
        if content is not None:
            file = shown_file(kind, content)
            parts.append(FormPart(name="file", content=file, file_name=kind.file))
        content_type, form = write_form(parts)
        return Reply(200, form, content_type=content_type)
    if kind.file and media == OCTETS:
        if content is None:
            raise HttpError(404, f"the {kind.name} has no file")
        return Reply(200, shown_file(kind, content), content_type=OCTETS)
    refuse_unless_json(accept)
    return call.json(answer)


def refuse_unless_json(accept: str) -> None:
    if not accepts_json(accept):
        raise HttpError(406, f"Only {JSON} is provided")


async def listing(kind: DocumentKind, call: Call) -> Reply:
    """All documents of a kind below a parent, a page of them, or the one that is asked for."""
    refuse_unless_json(call.request.headers.get("accept", ""))
    if call.request.method == QUERY:
        if kind.query not in call.query:
            raise HttpError(405, f"{QUERY} needs the parameter {kind.query!r}")
        return await one_by_query(kind, call)
    filters = listings.FILTERS.get(kind.name, ())
    by_emco = is_emco(call)
    if not by_emco:
        known = (*([kind.query] if kind.query else []), *filters, "limit", "after")
        refuse_unknown(call, known)
        if kind.query and kind.query in call.query:
            return await one_by_query(kind, call)
    parent = parent_of(kind, call)
    limit, after = paging(call)

    def read(tx: Transaction) -> tuple[Any, int | None]:
        if not by_emco or emco.answers_of(kind).no_parent_to_list:
            store.refuse_without_parent(tx, kind, parent)
        found = objects.listing(
            tx, parent, kind.name, after=after, limit=None if limit is None else limit + 1
        )
        more = found[limit - 1].position if limit is not None and len(found) > limit else None
        page = found if limit is None else found[:limit]
        chosen = listings.chosen(tx, kind, page, call.query)
        if chosen is not None:
            return chosen, more
        return [shown(kind, with_children(tx, each, call), call) for each in page], more

    found, more = await call.read(read)
    answer = listings.as_emco(kind, found) if by_emco else found
    reply = await call.long_json(LongList(answer) if isinstance(answer, list) else answer)
    if more is not None:
        reply.headers["link"] = next_link(call, limit, more)
    return reply


async def one_by_query(kind: DocumentKind, call: Call) -> Reply:
    path = path_by_query(kind, call)
    document = await call.read(lambda tx: with_children(tx, store.get(tx, kind, path), call))
    return call.json(shown(kind, document, call))


def path_by_query(kind: DocumentKind, call: Call) -> str:
    name = call.query.get(kind.query) or ""
    parent = parent_of(kind, call)
    try:
        return kind.path_below(parent, (name,))
    except LookupError as error:
        raise ObjectNotFound(kind, name) from error


def paging(call: Call) -> tuple[int | None, int | None]:
    """How many, and after which position."""
    found: list[int | None] = []
    for name, most in (("limit", MOST_LISTED), ("after", 2**53)):
        text = call.query.get(name)
        if text is None:
            found.append(None)
            continue
        if not text.isascii() or not text.isdecimal() or len(text) > 16:
            raise bad_request(f"{name}: a whole number is expected")
        number = int(text)
        if not (1 if name == "limit" else 0) <= number <= most:
            raise bad_request(f"{name}: {number} is out of bounds")
        found.append(number)
    return found[0], found[1]


def next_link(call: Call, limit: int | None, more: int) -> str:
    rest = [pair for pair in call.query.pairs if pair[0] not in ("limit", "after")]
    query = urlencode([*rest, ("limit", limit), ("after", more)])
    return f'<{call.url(call.request.scope["path"])}?{query}>; rel="next"'


# -- what goes -----------------------------------------------------------------------------------


async def drop(kind: DocumentKind, call: Call) -> Reply:
    refuse_unknown(call, ())
    path, hooks = path_of(kind, call), call.backend.intent_hooks
    await call.write(lambda tx: store.drop(tx, hooks, kind, path))
    return call.empty()


async def clear(kind: DocumentKind, call: Call) -> Reply:
    """All of a collection or none; with the query of its kind, that one."""
    refuse_unknown(call, [kind.query] if kind.query else ())
    hooks, by_emco = call.backend.intent_hooks, is_emco(call)
    if kind.query and kind.query in call.query:
        if by_emco:
            # EMCO's route for it leads to what shows one.
            return await one_by_query(kind, call)
        path = path_by_query(kind, call)
        await call.write(lambda tx: store.drop(tx, hooks, kind, path))
        return call.empty()
    parent = parent_of(kind, call)
    if by_emco:
        return await clear_one_by_one(kind, call, parent)

    def write(tx: Transaction) -> None:
        store.refuse_without_parent(tx, kind, parent)
        store.clear(tx, hooks, kind, parent)

    await call.write(write)
    return call.empty()


async def clear_one_by_one(kind: DocumentKind, call: Call, parent: str | None) -> Reply:
    """EMCO's way: those before the first that cannot go are gone."""
    hooks = call.backend.intent_hooks
    for each in await call.read(lambda tx: objects.listing(tx, parent, kind.name)):
        await call.write(partial(store.drop, hooks=hooks, kind=kind, path=each.path))
    return call.empty()
