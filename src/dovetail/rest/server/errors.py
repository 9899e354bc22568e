"""Errors on their way to answers: HttpError, the table of the domain's errors, problem details.

Handlers raise HttpError where they have something to say; errors of the domain that they let pass
are answered by the table of their door. What an answer looks like is the door's `problem`:
RFC 9457 problem details unless clients are used to something else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import orjson

from dovetail.core.errors import (
    AlreadyExists,
    InUse,
    Malformed,
    NotFound,
    Refused,
    StaleGeneration,
)
from dovetail.ledger import LedgerBusy, OutcomeUnknown
from dovetail.ledger.database.idempotency import KeyReused
from dovetail.rest.server.http import Reply, Version
from dovetail.service.asking import TooBroad
from dovetail.service.claims import DeviceTaken, NothingFits, Outrun
from dovetail.service.explanations import TooLong

if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from dovetail.rest.auth.identity import Identity
    from dovetail.rest.server.backend import ServerBackend

PROBLEM = "application/problem+json"


class HttpError(Exception):
    """An answer other than success."""

    def __init__(
        self,
        status: int,
        message: str = "",
        *,
        code: str = "",
        headers: dict[str, str] | None = None,
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code
        self.headers = headers or {}
        self.extra = extra or {}


def forget_frames(error: BaseException) -> None:
    """Let go of the frames that an error and its causes came through, once it is answered.

    They hold what was worked on, documents of megabytes among it, and the error again: a cycle that
    would wait for the garbage collector to go through all objects.
    """
    left: BaseException | None = error
    while left is not None and left.__traceback__ is not None:
        left.__traceback__ = None
        left = left.__cause__ or left.__context__


def bad_request(message: str, code: str = "") -> HttpError:
    return HttpError(400, message, code=code)


def not_found(message: str = "") -> HttpError:
    return HttpError(404, message)


def conflict(message: str, code: str = "") -> HttpError:
    return HttpError(409, message, code=code)


class ErrorAnswer(NamedTuple):
    """How an error of the domain is answered; its text is the message."""

    status: int
    code: str = ""
    """What programs know it by, in doors that have codes."""


ErrorTable = Mapping[type[Exception], ErrorAnswer]
"""An error is answered as the nearest of its base classes that is here."""

DOMAIN_ERRORS: ErrorTable = {
    NotFound: ErrorAnswer(404),
    Malformed: ErrorAnswer(400),
    AlreadyExists: ErrorAnswer(409),
    InUse: ErrorAnswer(409),
    StaleGeneration: ErrorAnswer(409),
    Refused: ErrorAnswer(409),
    DeviceTaken: ErrorAnswer(409),
    NothingFits: ErrorAnswer(409),
    Outrun: ErrorAnswer(503),
    KeyReused: ErrorAnswer(422),
    TooBroad: ErrorAnswer(400),
    TooLong: ErrorAnswer(400),
}


def answer_of(error: Exception, table: ErrorTable) -> HttpError | None:
    """None if the table does not know such errors: then it is ours."""
    for kind in type(error).__mro__:
        found = table.get(kind)
        if found is not None:
            return HttpError(found.status, str(error), code=found.code)
    return None


def ledger_refusal(error: LedgerBusy) -> HttpError:
    """Its reason names hosts, files and users of the database: that is for the log alone."""
    if isinstance(error, OutcomeUnknown):
        # No retry-after: whoever repeats a write that stands may hold things twice.
        return HttpError(
            503, "The outcome of this write is unknown: it may stand or not. Look before repeating."
        )
    return HttpError(503, "The ledger cannot be used now.", headers={"retry-after": "1"})


class RefusedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What the shape of an error may depend on."""

    method: str
    headers: Headers
    version: Version | None
    """None if it was refused before its version was known."""
    request_id: str
    target: str
    """Path and query, as asked for."""
    identity: Identity
    """Nobody, if it was refused before its caller was known."""
    backend: ServerBackend


Problem = Callable[[HttpError, RefusedRequest], Awaitable[Reply]]


async def problem_details(error: HttpError, request: RefusedRequest) -> Reply:
    document = {
        "type": "about:blank",
        "title": HTTPStatus(error.status).phrase,
        "status": error.status,
        "detail": error.message,
        "request_id": request.request_id,
        **error.extra,
    }
    return Reply(error.status, orjson.dumps(document), error.headers, content_type=PROBLEM)
