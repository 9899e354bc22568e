"""The door of hardware intents, /v2: what EMCO's users know, and what they asked for.

The same is there without /v2, as the specification has it.
"""

from __future__ import annotations

from dovetail.rest.intents.dialects import ERRORS, problem
from dovetail.rest.intents.routes import ROUTES, TOPS
from dovetail.rest.openapi.operations import DoorDescription
from dovetail.rest.server.door import Door, Unversioned


def describe() -> DoorDescription:
    from dovetail.rest.intents.openapi import DESCRIPTION

    return DESCRIPTION


INTENTS = Door(
    "/v2",
    ROUTES,
    Unversioned(),
    problem,
    describe,
    errors=ERRORS,
    headers={"cache-control": "no-store"},
    aliases=TOPS,
)
