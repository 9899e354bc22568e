"""GET /console/me: who the caller is, what it may do, and what this deployment uses."""

from __future__ import annotations

import dovetail
from dovetail.ledger.views import used_parts
from dovetail.rest.auth.noauth import NoAuth
from dovetail.rest.server import policy
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


async def show(call: Call) -> Reply:
    identity = call.identity
    return call.json(
        {
            "user": identity.user,
            "project": identity.project,
            "roles": sorted(identity.roles),
            "may": rights(call),
            "login": has_login(call),
            "uses": await uses(call),
            "version": dovetail.__version__,
        }
    )


def rights(call: Call) -> dict[str, bool]:
    """What the caller may do, by the names of `ACTIONS`."""
    identity, rules = call.identity, call.backend.rules
    return {
        name: rules.allows(action, identity, identity.project) for name, action in ACTIONS.items()
    }


def has_login(call: Call) -> bool:
    """Whether callers have to say who they are."""
    return not isinstance(call.backend.authenticator, NoAuth)


async def uses(call: Call) -> dict[str, bool]:
    """What a deployment does not use is not offered."""
    return await call.read(used_parts.of_ledger)
