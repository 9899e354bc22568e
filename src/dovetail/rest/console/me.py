"""GET /console/me: who the caller is, what it may do, and what this deployment uses."""

from __future__ import annotations

import asyncio

import dovetail
from dovetail.ledger.views import used_parts
from dovetail.rest.auth.identity import Identity
from dovetail.rest.auth.noauth import NoAuth
from dovetail.rest.server import policy
from dovetail.rest.server.backend import ServerBackend
from dovetail.rest.server.http import Call, Reply

ACTIONS = {
    "explain": policy.EXPLAIN,
    "claim": policy.CLAIM,
    "release": policy.RELEASE,
    "holders": policy.HOLDERS,
    "audit": policy.AUDIT,
    "heal": policy.HEAL,
    "map": policy.MAP,
    "classes": policy.SHOW_CLASSES,
    "intents": policy.READ_INTENTS,
    "deploy": policy.DEPLOY_INTENTS,
}
"""What pages offer, by the action that the policy knows it by."""
OF_ALL = {"intents_of_all": policy.READ_INTENTS}
"""The same where no project is named: readers of one may see theirs alone."""


async def show(call: Call) -> Reply:
    identity = call.identity
    return call.json(
        {
            "user": identity.user,
            "project": identity.project,
            "roles": sorted(identity.roles),
            "may": rights(identity, call.backend),
            "login": has_login(call.backend),
            "uses": await uses(call.backend),
            "version": dovetail.__version__,
        }
    )


def rights(identity: Identity, backend: ServerBackend) -> dict[str, bool]:
    """What the caller may do, by the names of `ACTIONS` and `OF_ALL`."""
    allows, own = backend.rules.allows, identity.project
    may = {name: allows(action, identity, own) for name, action in ACTIONS.items()}
    return may | {name: allows(action, identity) for name, action in OF_ALL.items()}


def has_login(backend: ServerBackend) -> bool:
    """Whether callers have to say who they are."""
    return not isinstance(backend.authenticator, NoAuth)


async def uses(backend: ServerBackend) -> dict[str, bool]:
    """What a deployment does not use is not offered."""
    return await asyncio.wrap_future(backend.ledger.read(used_parts.of_ledger))
