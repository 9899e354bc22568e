"""GET /dovetail/v1/explain: why does this fit, or not?"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dovetail.core.explanation import document
from dovetail.core.request import Request
from dovetail.engine.explain import Diagnosis, Names
from dovetail.ledger import Transaction, decisions, provider_names, usages
from dovetail.rest.query.parse import classes_for, newest_request, request_in
from dovetail.rest.query.query_text import query_text
from dovetail.rest.server.errors import HttpError, bad_request
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.policy import HOLDERS
from dovetail.service.asking import refuse_unknown_names
from dovetail.service.explanations import diagnose, with_moves
from dovetail.telemetry.phases import phase


async def show(call: Call) -> Reply:
    query = call.query.without("host").without("moves")
    moves = wants_moves(call)
    classes = await classes_for(call.backend.keeper, query)
    with phase("parse"):
        request = newest_request(query, classes, call.backend.limits)
    host = await uuid_of_host(call, call.query.get("host"))
    keeper = call.backend.keeper
    snapshot = await keeper.fresh()
    refuse_unknown_names(snapshot, request)
    with keeper.held(snapshot):
        seconds = call.backend.limits.search_seconds
        found = await diagnose(snapshot, request, seconds, host)
        if moves:
            found = await with_moves(found, snapshot, request, LedgerRecords(call), seconds)
    names = await names_in(call, found)
    with phase("encode"):
        return call.json(document(found.explanation(names, query_text)))


def wants_moves(call: Call) -> bool:
    """Whether to say whom to move: only to those who may see who holds what."""
    text = call.query.get("moves")
    if text not in (None, "0", "1"):
        raise bad_request(f"moves: {text!r} is neither 0 nor 1")
    if text == "1":
        refuse_strangers(call)
    return text == "1"


def refuse_strangers(call: Call) -> None:
    if not call.backend.rules.allows(HOLDERS, call.identity):
        raise HttpError(403, f"{HOLDERS}: you may not see who holds what, so not whom to move.")


class LedgerRecords:
    """What the ledger has about consumers, for `service.explanations.with_moves`."""

    def __init__(self, call: Call, released: Collection[str] = ()) -> None:
        """`released`: consumers that are supposed to be gone."""
        self._call, self._released = call, released

    async def holders(self, root_ids: Sequence[int]) -> Sequence[usages.HolderUnits]:
        def read(tx: Transaction) -> list[usages.HolderUnits]:
            found = usages.of_trees(tx, root_ids)
            return [held for held in found if held[0] not in self._released]

        return await self._call.read(read)

    async def decisions(self, consumers: Sequence[str]) -> Sequence[tuple[str, str]]:
        return await self._call.read(lambda tx: decisions.of_consumers(tx, consumers))

    async def request_of(self, query: str) -> Request | None:
        """None as well for decisions of machines and devices, which follow no such query."""
        backend = self._call.backend
        try:
            return await request_in(backend.keeper, query, backend.limits)
        except HttpError:
            return None


async def uuid_of_host(call: Call, key: str | None) -> str | None:
    if key is None:
        return None
    return (await call.read(lambda tx: provider_names.get(tx, key))).uuid


async def names_in(call: Call, diagnosis: Diagnosis) -> Names:
    uuids = diagnosis.mentioned
    found = await call.read(lambda tx: provider_names.find(tx, uuids))
    return {uuid: named.name for uuid, named in found.items()}
