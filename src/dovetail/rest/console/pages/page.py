"""What all pages have in common: asking the API for what they show, and the frame around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from dovetail.aio.pace import Pace
from dovetail.rest.auth.identity import Identity
from dovetail.rest.console import me
from dovetail.rest.console.addresses import PREFIX
from dovetail.rest.console.markup import Child, Markup, element, sentence, table_of, table_row
from dovetail.rest.console.shell import HTML, PageCaller, framed
from dovetail.rest.server.backend import ServerBackend
from dovetail.rest.server.errors import HttpError
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.pieces.reading import MalformedJson, read_json


async def page(call: Call, title: str, here: str, *content: Child, status: int = 200) -> Reply:
    """A view in its frame; `here` is its path below the prefix, as the navigation has it."""
    caller = page_caller(call.identity, call.backend, await me.uses(call.backend))
    return Reply(status, framed(title, here, caller, *content), content_type=HTML)


def page_caller(identity: Identity, backend: ServerBackend, uses: Mapping[str, bool]) -> PageCaller:
    rights = me.rights(identity, backend)
    return PageCaller(
        name=identity.user,
        may=tuple(name for name, allowed in rights.items() if allowed),
        can_leave=me.has_login(backend),
        uses=uses,
    )


async def asked(call: Call, path: str, **parameters: str | None) -> Any:
    """What the API answers the reader. Raises HttpError as it was refused there."""
    given = {key: value for key, value in parameters.items() if value}
    reply = await call.ask(f"{path}?{urlencode(given)}" if given else path)
    body = await reply.whole()
    if reply.status >= 400:
        raise HttpError(reply.status, problem_text(body))
    try:
        return await read_json(body)
    except MalformedJson as error:
        raise HttpError(413, f"{path} answers with more than a page can show.") from error


def problem_text(body: bytes) -> str:
    """The detail of a refusal, in whichever form a door has it."""
    try:
        document = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return body.decode("utf-8", "replace").strip()
    if isinstance(document, dict):
        first = next(iter(document.get("errors", ())), document)
        return str(first.get("detail", ""))
    return str(document)


async def long_table(
    caption: Child, heads: Iterable[Child], rows: Iterable[Iterable[Child]]
) -> Markup:
    """A table of any length: others are served while its rows are made."""
    pace, parts = Pace(), list[Markup]()
    for cells in rows:
        parts.append(table_row(cells))
        await pace.give_way()
    return table_of(caption, heads, parts)


def problem(error: HttpError, names: Iterable[str | None] = ()) -> Markup:
    """`names`: what was asked for, which the refusal may repeat."""
    words = error.message or f"Refused ({error.status})."
    return element("p", sentence(words, names), class_="problem", role="alert")


NAMING = frozenset({"name", "provider", "consumer", "project", "user", "cluster", "app", "group"})
"""Members of documents that hold names."""


def names_in(document: Any) -> set[str]:
    """All names that a document tells beside its sentences."""
    found, left = set[str](), [document]
    while left:
        each = left.pop()
        if isinstance(each, dict):
            found.update(
                value for key, value in each.items() if key in NAMING and isinstance(value, str)
            )
            left += each.values()
        elif isinstance(each, list):
            left += each
    return found


def address(path: str, **parameters: str | None) -> str:
    """Of a page below the prefix."""
    given = {key: value for key, value in parameters.items() if value}
    return f"{PREFIX}{path}" + (f"?{urlencode(given)}" if given else "")


def field(key: str, label: str, value: str | None) -> Markup:
    return element(
        "div",
        element("label", label, for_=key),
        element("input", id=key, name=key, value=value or ""),
    )


def chooser(key: str, label: str, values: Iterable[str], chosen: str | None) -> Markup:
    options = [element("option", each, value=each, selected=each == chosen) for each in values]
    return element(
        "div",
        element("label", label, for_=key),
        element("select", *options, id=key, name=key),
    )


def searching(path: str, *fields: Markup) -> Markup:
    """A form that asks for the page again, with what is filled in."""
    return element(
        "form",
        *fields,
        element("button", "Show", type="submit"),
        method="get",
        action=address(path),
        class_="asked",
    )
