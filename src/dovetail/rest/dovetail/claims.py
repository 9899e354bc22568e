"""POST /dovetail/v1/claims: find the best place and claim it, in one call."""

from __future__ import annotations

import uuid as uuids
from typing import Annotated

import msgspec
import orjson
from msgspec import Meta

from dovetail.core.claim import Claim
from dovetail.core.errors import AlreadyExists, StaleGeneration
from dovetail.core.explanation import document
from dovetail.core.request import Request
from dovetail.ledger import Transaction
from dovetail.ledger.database.idempotency import IdempotencyKey, IdempotentAnswer
from dovetail.rest.dovetail.explain import names_in
from dovetail.rest.query.parse import request_in
from dovetail.rest.query.query_text import query_text
from dovetail.rest.server.errors import HttpError, bad_request, conflict
from dovetail.rest.server.headers import KEY, key_of
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.validation import refuse_nul
from dovetail.service.claiming.best import BestClaim, WithClaim, claim_best
from dovetail.service.claims import UNNAMED_OWNER, NothingFits, Outrun
from dovetail.service.explanations import REFUSAL_SECONDS, TooLong, diagnose
from dovetail.telemetry.phases import phase

Text = Annotated[str, Meta(min_length=1, max_length=255)]


class BestClaimRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The caller is the owner unless another is named."""

    query: str
    project_id: Text | None = None
    user_id: Text | None = None
    consumer: uuids.UUID | None = None
    consumer_type: Annotated[str, Meta(pattern=r"^[A-Z0-9_]{1,255}\Z")] | None = None


async def claim(call: Call) -> Reply:
    with phase("parse"):
        wanted = claim_request(call.body)
        key = key_of(call, msgspec.json.encode(wanted)) if KEY in call.request.headers else None
    if key is not None and (found := await call.read(key.kept)) is not None:
        call.is_claiming = True
        return replied(found)
    with phase("parse"):
        request = await request_in(call.backend.keeper, wanted.query, call.backend.limits)
    consumer = str(wanted.consumer or uuids.uuid4())

    def claim_of(allocations: dict[str, dict[str, int]]) -> Claim:
        return Claim(
            consumer=consumer,
            project=wanted.project_id or call.identity.project or UNNAMED_OWNER,
            user=wanted.user_id or call.identity.user or UNNAMED_OWNER,
            consumer_type=wanted.consumer_type,
            allocations=allocations,
        )

    backend = call.backend
    call.is_claiming = True
    try:
        claimed = await claim_best(
            backend.ledger,
            backend.keeper,
            request,
            query=wanted.query,
            claim=claim_of,
            budget_seconds=backend.limits.search_seconds,
            with_claim=None if key is None else kept_with(key, consumer),
        )
    except AnsweredBefore as error:
        return replied(error.answer)
    except StaleGeneration as error:
        raise conflict(f"consumer {consumer} holds something already: {error}") from error
    except NothingFits as error:
        raise await nothing_fits(call, request) from error
    except Outrun as error:
        # There is room, so that this is no refusal.
        raise HttpError(503, f"Try again: {error}", headers={"retry-after": "1"}) from error
    return call.json(document_of(consumer, claimed), 201)


class AnsweredBefore(AlreadyExists):
    """The same request, sent at the same time, has made the claim."""

    def __init__(self, answer: IdempotentAnswer) -> None:
        super().__init__("the claim was made by the same request")
        self.answer = answer


def kept_with(key: IdempotencyKey, consumer: str) -> WithClaim:
    """The answer is kept under the key in the transaction of the claim."""

    def before(tx: Transaction) -> None:
        found = key.kept(tx)
        if found is not None:
            raise AnsweredBefore(found)

    def after(tx: Transaction, claimed: BestClaim) -> None:
        key.keep(tx, 201, orjson.dumps(document_of(consumer, claimed)).decode())

    return WithClaim(before, after)


def replied(answer: IdempotentAnswer) -> Reply:
    return Reply(answer.status, answer.body.encode())


def claim_request(body: bytes) -> BestClaimRequest:
    refuse_nul(body)
    try:
        return msgspec.json.decode(body, type=BestClaimRequest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise bad_request(f"the claim is not as it should be: {error}") from error


async def nothing_fits(call: Call, request: Request) -> HttpError:
    """The refusal, and why."""
    keeper = call.backend.keeper
    snapshot = await keeper.fresh()
    with keeper.held(snapshot):
        try:
            seconds = min(REFUSAL_SECONDS, call.backend.limits.search_seconds)
            found = await diagnose(snapshot, request, seconds)
        except TooLong:
            return HttpError(409, "Nothing fits.")
    explanation = found.explanation(await names_in(call, found), query_text)
    return HttpError(409, explanation.summary, extra={"explanation": document(explanation)})


def document_of(consumer: str, claimed: BestClaim) -> dict[str, object]:
    return {
        "consumer": consumer,
        "allocations": {
            uuid: {"name": claimed.names[uuid], "resources": resources}
            for uuid, resources in claimed.allocations.items()
        },
        "mappings": {suffix: sorted(uuids) for suffix, uuids in claimed.mappings.items()},
        "decision": claimed.decision,
    }
