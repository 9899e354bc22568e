"""What handlers of intents have in common: errors in the right dialect, paths, idempotency keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import orjson

from dovetail.core.errors import AlreadyExists, DovetailError
from dovetail.intents.documents.kinds import DocumentKind, NoSuchName
from dovetail.ledger import Transaction
from dovetail.ledger.database.idempotency import IdempotencyKey, IdempotentAnswer
from dovetail.rest.intents.dialects import PlainRefusal, RefusedCall, refusal_of
from dovetail.rest.server.errors import HttpError, bad_request
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.routing import Handler
from dovetail.service.intents.objects import ObjectNotFound, ParentNotFound

Run = Callable[[Call], Awaitable[Reply]]
Operation = Callable[[Transaction], IdempotentAnswer]


def handler(
    name: str, run: Run, kind: DocumentKind | None = None, *, missing_in_emco: int | None = None
) -> Handler:
    """`run`, with errors of the domain answered in the dialect that is set.

    `missing_in_emco` is what EMCO answers about a group that is not there.
    """

    async def handle(call: Call) -> Reply:
        try:
            return await run(call)
        except HttpError as error:
            raise PlainRefusal.of(error) if is_emco(call) else error from error
        except DovetailError as error:
            refused = RefusedCall(
                kind=kind,
                method=call.request.method,
                is_emco=is_emco(call),
                missing_in_emco=missing_in_emco,
            )
            answer = refusal_of(error, refused)
            if answer is None:
                raise
            raise answer from error

    handle.__name__ = name
    return handle


def is_emco(call: Call) -> bool:
    return call.backend.intent_settings.emco_status_codes


def path_of(kind: DocumentKind, call: Call) -> str:
    """Of the document that the address names. Raises ObjectNotFound."""
    try:
        return kind.path(call.params)
    except NoSuchName as error:
        raise ObjectNotFound(kind, str(error)) from error


def parent_of(kind: DocumentKind, call: Call) -> str | None:
    """Of the document that the address is below. Raises ParentNotFound."""
    try:
        return kind.parent_path(call.params)
    except NoSuchName as error:
        raise ParentNotFound(kind, str(error)) from error


def refuse_unknown(call: Call, known: Iterable[str]) -> None:
    """EMCO ignores them."""
    if is_emco(call):
        return
    names = tuple(known)
    for name, _ in call.query.pairs:
        if name not in names:
            raise bad_request(f"no parameter {name!r}: there is {', '.join(names) or 'none'}")


# -- idempotency ---------------------------------------------------------------------------------


async def once(
    call: Call, key: IdempotencyKey | None, write: Callable[[Transaction], Any]
) -> Reply:
    """Run `write`, whose result is answered with 201, unless it was run under the same key."""

    def operation(tx: Transaction) -> IdempotentAnswer:
        found = key.kept(tx) if key is not None else None
        if found is not None:
            return found
        try:
            body = orjson.dumps(write(tx)).decode()
        except AlreadyExists:
            # The same request may have been under way at the same time, and be done by now.
            found = key.kept(tx) if key is not None else None
            if found is None:
                raise
            return found
        return key.keep(tx, 201, body) if key is not None else IdempotentAnswer("", 201, body)

    answer = await call.write(operation)
    return Reply(answer.status, answer.body.encode())
