"""GET /dovetail/v1/explain: why does this fit, or not?"""

from __future__ import annotations

from dovetail.core.explanation import document
from dovetail.engine.explain import Diagnosis, Names
from dovetail.ledger import provider_names
from dovetail.rest.query.parse import classes_for, newest_request
from dovetail.rest.query.query_text import query_text
from dovetail.rest.server.http import Call, Reply
from dovetail.service.asking import refuse_unknown_names
from dovetail.service.explanations import diagnose
from dovetail.telemetry.phases import phase


async def show(call: Call) -> Reply:
    query = call.query.without("host")
    classes = await classes_for(call.backend.keeper, query)
    with phase("parse"):
        request = newest_request(query, classes, call.backend.limits)
    host = await uuid_of_host(call, call.query.get("host"))
    keeper = call.backend.keeper
    snapshot = await keeper.fresh()
    refuse_unknown_names(snapshot, request)
    with keeper.held(snapshot):
        found = await diagnose(snapshot, request, call.backend.limits.search_seconds, host)
    names = await names_in(call, found)
    with phase("encode"):
        return call.json(document(found.explanation(names, query_text)))


async def uuid_of_host(call: Call, key: str | None) -> str | None:
    if key is None:
        return None
    return (await call.read(lambda tx: provider_names.get(tx, key))).uuid


async def names_in(call: Call, diagnosis: Diagnosis) -> Names:
    uuids = list(diagnosis.uuids.values())
    found = await call.read(lambda tx: provider_names.find(tx, uuids))
    return {uuid: named.name for uuid, named in found.items()}
