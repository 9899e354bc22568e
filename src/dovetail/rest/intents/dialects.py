"""How errors of the domain are answered by the door of intents: in our way, or in EMCO's.

Ours are problem details with the `field` that is wrong; EMCO's are plain text with its own status
codes. What the server itself refuses (no such route, no permission) is told in our way.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.core.errors import AlreadyExists, DovetailError, InUse, NotFound
from dovetail.intents.documents.errors import BadDocument, MistypedDocument, UnmetDependency
from dovetail.intents.documents.kinds import GROUP, DocumentKind
from dovetail.intents.manifests.errors import BadManifest
from dovetail.ledger import LedgerBusy
from dovetail.rest.intents import emco
from dovetail.rest.intents.body import EmptyBody, NoJson
from dovetail.rest.intents.multipart import BadForm
from dovetail.rest.server.errors import (
    DOMAIN_ERRORS,
    ErrorAnswer,
    ErrorTable,
    HttpError,
    RefusedRequest,
    answer_of,
    problem_details,
)
from dovetail.rest.server.http import Reply
from dovetail.service.intents.objects import (
    CloudInWrongState,
    HasChildren,
    IsReferenced,
    ObjectExists,
    ObjectNotFound,
    ParentNotFound,
    ProfileExists,
)
from dovetail.service.intents.ports import Infeasible, WrongState

PLAIN = "text/plain; charset=utf-8"


class NameMismatch(BadDocument):
    """The document names another than its address does."""


class NoFile(BadDocument):
    """EMCO wants a file with it."""


ERRORS: ErrorTable = {
    **DOMAIN_ERRORS,
    MistypedDocument: ErrorAnswer(422),
    NoJson: ErrorAnswer(422),
    BadForm: ErrorAnswer(422),
    Infeasible: ErrorAnswer(422),
    WrongState: ErrorAnswer(409),
}


class PlainRefusal(HttpError):
    """Answered as EMCO does."""

    @classmethod
    def of(cls, error: HttpError) -> PlainRefusal:
        return cls(error.status, error.message, headers=error.headers)


async def problem(error: HttpError, request: RefusedRequest) -> Reply:
    if isinstance(error, PlainRefusal):
        text = f"{error.message}\n".encode()
        return Reply(error.status, text, error.headers, content_type=PLAIN)
    return await problem_details(error, request)


class RefusedCall(msgspec.Struct, frozen=True, kw_only=True):
    """What the answer to an error may depend on."""

    kind: DocumentKind | None
    """None: it is no document that was asked about."""
    method: str
    is_emco: bool
    missing_in_emco: int | None = None
    """Of an action that EMCO has: its status where the group is not there."""


def refusal_of(error: DovetailError, call: RefusedCall) -> HttpError | None:
    """None if others know better how to answer it."""
    if isinstance(error, LedgerBusy):
        return None
    found = answer_of(error, ERRORS)
    if found is None:
        return None
    if call.is_emco:
        return _in_emco(error, call, found)
    return HttpError(found.status, found.message, extra=_details(error))


def _details(error: DovetailError) -> dict[str, Any]:
    if isinstance(error, BadDocument):
        listed = [{"field": each.field, "message": each.message} for each in error.violations]
        return {"field": error.field, "violations": listed}
    if isinstance(error, BadManifest):
        return {"field": "file"}
    if isinstance(error, Infeasible):
        return {"reasons": error.reasons, **error.more}
    return {}


def _in_emco(error: DovetailError, call: RefusedCall, found: HttpError) -> HttpError:
    if call.kind is not None:
        told = _about_document(error, call, emco.answers_of(call.kind))
        if told is not None:
            return PlainRefusal(*told)
    if isinstance(error, NotFound) and call.missing_in_emco is not None:
        return PlainRefusal(call.missing_in_emco, emco.ANSWERS[GROUP].missing)
    if isinstance(error, UnmetDependency):
        return PlainRefusal(found.status, error.violations[0].emco)
    if isinstance(error, BadDocument) and not isinstance(error, MistypedDocument):
        return PlainRefusal(found.status, emco.violations_text(call.kind, error.violations))
    if call.kind is None and isinstance(error, WrongState | Infeasible):
        # EMCO has no status code for what it cannot do.
        return PlainRefusal(500, str(error))
    return PlainRefusal(found.status, str(error))


def _about_document(
    error: DovetailError, call: RefusedCall, answers: emco.EmcoAnswers
) -> tuple[int, str] | None:
    if isinstance(error, NotFound | AlreadyExists | InUse):
        return _about_stored(error, call, answers)
    match error:
        case EmptyBody():
            return 400, answers.empty_put if call.method == "PUT" else answers.empty_post
        case NameMismatch():
            return 400, answers.mismatch
        case BadManifest():
            return 422, emco.BAD_FILE
        case NoFile() | MistypedDocument():
            return 422, error.violations[0].emco
        case CloudInWrongState():
            return 409, error.emco
    return None


def _about_stored(
    error: DovetailError, call: RefusedCall, answers: emco.EmcoAnswers
) -> tuple[int, str] | None:
    match error:
        case ParentNotFound():
            is_read = call.method == "GET"
            return (404, answers.no_parent_to_list) if is_read else answers.no_parent
        case ObjectNotFound():
            is_gone = call.method == "DELETE"
            return 404, answers.missing_to_delete if is_gone else answers.missing
        case ProfileExists():
            return 409, "App already has an AppProfile"
        case ObjectExists():
            return 409, answers.exists
        case HasChildren():
            return 409, emco.CHILDREN
        case IsReferenced():
            return 409, emco.REFERENCED
    return None
