"""Dovetail's own door, /dovetail: what the fleet is asked beyond Placement's API.

Its questions are candidate queries, so it speaks the microversions of their language.
"""

from __future__ import annotations

from dovetail.rest.dovetail.routes import ROUTES
from dovetail.rest.openapi.operations import DoorDescription
from dovetail.rest.query.versions import MICROVERSIONS
from dovetail.rest.server.door import Door
from dovetail.rest.server.errors import problem_details


def describe() -> DoorDescription:
    from dovetail.rest.dovetail.openapi import DESCRIPTION

    return DESCRIPTION


DOVETAIL = Door(
    "/dovetail",
    ROUTES,
    MICROVERSIONS,
    problem_details,
    describe,
    headers={"cache-control": "no-store"},
)
