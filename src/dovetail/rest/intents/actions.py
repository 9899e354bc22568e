"""What is done with a deployment intent group: approve, instantiate, plan, explain, status and so
on. `service/intents` does it; here requests are read and answers are written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from dovetail.intents.documents.errors import broken_rule
from dovetail.intents.documents.kinds import KINDS, NAME
from dovetail.ledger.database.idempotency import IdempotentAnswer
from dovetail.rest.intents.body import document_in
from dovetail.rest.intents.calls import Run, is_emco, path_of, refuse_unknown
from dovetail.rest.server.errors import HttpError, bad_request
from dovetail.rest.server.headers import key_of
from dovetail.rest.server.http import Call, Reply
from dovetail.service.intents.ports import Answer, IntentActions, StatusQuery

GROUP = KINDS["deployment-intent-group"]
OUTPUTS = ("summary", "all", "detail")
KINDS_OF_STATUS = {
    "cluster": "ready",
    "ready": "ready",
    "rsync": "deployed",
    "deployed": "deployed",
}
"""EMCO's words, old and new."""
LONGEST_REVISION = 9

Act = Callable[[IntentActions, str, Call], Awaitable[Answer]]


def actions_of(call: Call) -> IntentActions:
    if call.backend.intents is None:
        raise HttpError(503, "This server deploys nothing.")
    return call.backend.intents


def acting(act: Act, *parameters: str, empty_in_emco: bool = True) -> Run:
    """Accepted, not done yet: status tells how far it is."""

    async def run(call: Call) -> Reply:
        refuse_unknown(call, parameters)
        group, actions = path_of(GROUP, call), actions_of(call)
        key = key_of(call, call.request.scope["query_string"], call.body)
        if key is not None:
            found = await call.read(key.kept)
            if found is not None:
                return replied(found)
        answer = await act(actions, group, call)
        if is_emco(call) and empty_in_emco:
            return call.empty(202)
        body = orjson.dumps(answer).decode()
        if key is None:
            return Reply(202, body.encode())
        return replied(await call.write(lambda tx: key.kept(tx) or key.keep(tx, 202, body)))

    return run


def replied(answer: IdempotentAnswer) -> Reply:
    return Reply(answer.status, answer.body.encode())


async def approve(actions: IntentActions, group: str, _call: Call) -> Answer:
    return await actions.approve(group)


async def instantiate(actions: IntentActions, group: str, _call: Call) -> Answer:
    return await actions.instantiate(group)


async def terminate(actions: IntentActions, group: str, _call: Call) -> Answer:
    return await actions.terminate(group)


async def stop(actions: IntentActions, group: str, _call: Call) -> Answer:
    return await actions.stop(group)


async def update(actions: IntentActions, group: str, call: Call) -> Answer:
    replace = call.query.get("replace")
    if replace not in (None, "true", "false"):
        raise bad_request("replace: true or false")
    return await actions.update(group, replace=replace == "true")


async def rollback(actions: IntentActions, group: str, call: Call) -> Answer:
    return await actions.rollback(group, revision=revision_in(document_in(call.body)))


def revision_in(document: dict[str, Any]) -> int:
    """`spec.revision`, a number or its digits."""
    spec = document.get("spec")
    revision = spec.get("revision") if isinstance(spec, dict) else None
    if isinstance(revision, str) and revision.isascii() and revision.isdecimal():
        revision = int(revision[:LONGEST_REVISION])
    if not isinstance(revision, int) or isinstance(revision, bool) or revision < 1:
        raise broken_rule("spec.revision", "a revision is expected", "revision is required")
    return revision


async def plan(call: Call) -> Reply:
    refuse_unknown(call, ())
    return call.json(await actions_of(call).plan(path_of(GROUP, call)))


async def explain(call: Call) -> Reply:
    refuse_unknown(call, ("app", "cluster"))
    app = call.query.get("app")
    if not app:
        raise bad_request("app: which app is asked about has to be said")
    answer = await actions_of(call).explain(
        path_of(GROUP, call), app=app, cluster=call.query.get("cluster")
    )
    return call.json(answer)


async def status(call: Call) -> Reply:
    return call.json(await actions_of(call).status(path_of(GROUP, call), status_query(call)))


STATUS_PARAMETERS = (
    *("instance", "type", "output", "app", "cluster", "resource"),
    *("apps", "clusters", "resources"),
)


def status_query(call: Call) -> StatusQuery:
    query = call.query
    refuse_unknown(call, STATUS_PARAMETERS)
    kind = query.get("type") or "ready"
    if kind not in KINDS_OF_STATUS:
        raise bad_request("Invalid query type")
    output = query.get("output") or "all"
    if output not in OUTPUTS:
        raise bad_request("Invalid query output")
    for name in query.all("app"):
        if not NAME.match(name):
            raise bad_request("Invalid app query")
    for name in query.all("cluster"):
        if len(name.split("+")) != 2 or not all(map(NAME.match, name.split("+"))):
            raise bad_request("Invalid cluster query")
    return StatusQuery(
        instance=query.get("instance") or "",
        kind=KINDS_OF_STATUS[kind],
        output=output,
        apps=tuple(query.all("app")),
        clusters=tuple(query.all("cluster")),
        resources=tuple(query.all("resource")),
    )
