"""GET /dovetail/v1/explain: why does this fit, or not?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dovetail.engine.explain import Finding, Relaxation, Step
from dovetail.ledger import provider_names
from dovetail.rest.placement.allocation_candidates import classes_for, refuse_unknown_names
from dovetail.rest.query.asking import request_in, without
from dovetail.rest.query.query_text import query_text
from dovetail.rest.server.errors import HttpError
from dovetail.rest.server.http import Call, Reply
from dovetail.service import explanation_text
from dovetail.service.explanations import Explanation, Host, TooLong, explain
from dovetail.telemetry.phases import phase

Names = Mapping[str, str]
"""Of providers, by UUID."""


async def show(call: Call) -> Reply:
    query = without(call.query, "host")
    classes = await classes_for(call.backend, query)
    with phase("parse"):
        request = request_in(query, classes)
    host = await uuid_of_host(call, call.query.get("host"))
    keeper = call.backend.keeper
    snapshot = await keeper.fresh()
    refuse_unknown_names(snapshot, request)
    with keeper.held(snapshot):
        try:
            found = await explain(snapshot, request, call.backend.limits.search_seconds, host)
        except TooLong as error:
            raise HttpError(400, str(error)) from error
    names = await names_in(call, found)
    with phase("encode"):
        return call.json(as_json(found, names))


async def uuid_of_host(call: Call, key: str | None) -> str | None:
    if key is None:
        return None
    return (await call.read(lambda tx: provider_names.get(tx, key))).uuid


async def names_in(call: Call, explanation: Explanation) -> Names:
    uuids = list(explanation.uuids.values())
    found = await call.read(lambda tx: provider_names.find(tx, uuids))
    return {uuid: named.name for uuid, named in found.items()}


def as_json(explanation: Explanation, names: Names) -> dict[str, Any]:
    return {
        "verdict": explanation.verdict,
        "summary": explanation_text.summary(explanation),
        "hosts": explanation.hosts,
        "fitting": explanation.fitting,
        "funnel": [step_json(step) for step in explanation.funnel],
        "nearest": [host_json(host, explanation, names) for host in explanation.nearest],
        "relaxations": [relaxation_json(one) for one in explanation.relaxations],
    }


def step_json(step: Step) -> dict[str, Any]:
    one = step.constraint
    return {
        "reason": one.reason,
        "group": one.group,
        "constraint": one.text,
        "left": step.left,
        "words": explanation_text.demand(one),
    }


def host_json(host: Host, explanation: Explanation, names: Names) -> dict[str, Any]:
    uuid = explanation.uuids[host.root]
    return {
        "name": names.get(uuid),
        "uuid": uuid,
        "fits": host.fits,
        "findings": [finding_json(one, explanation, names) for one in host.findings],
    }


def finding_json(found: Finding, explanation: Explanation, names: Names) -> dict[str, Any]:
    uuid = None if found.row is None else explanation.uuids[found.row]
    name = None if uuid is None else names.get(uuid, uuid)
    shown: dict[str, Any] = {
        "reason": found.reason,
        "group": found.constraint.group,
        "constraint": found.constraint.text,
        "met": found.met,
        "ever": found.ever,
        "provider": name,
        "provider_uuid": uuid,
        "words": explanation_text.finding(found, name),
    }
    if found.supply is not None:
        wanted, free = found.constraint.amount, found.supply.free
        shown |= {"wanted": wanted, "free": free, "capacity": found.supply.capacity}
        shown["short"] = max(wanted - free, 0)
    return shown


def relaxation_json(found: Relaxation) -> dict[str, Any]:
    return {
        "changes": [
            {
                "reason": one.reason,
                "group": one.group,
                "from": one.text,
                "to": None if other is None else other.text,
            }
            for one, other in found.changes.items()
        ],
        "hosts": found.trees,
        "query": query_text(found.request),
        "words": explanation_text.relaxation(found),
    }
