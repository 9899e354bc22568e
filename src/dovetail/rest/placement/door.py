"""Placement's door: OpenStack Placement's API, whose clients shall not notice the difference."""

from __future__ import annotations

from dovetail.rest.openapi.operations import DoorDescription
from dovetail.rest.placement.errors import ERRORS, problem
from dovetail.rest.placement.routes import ROUTES
from dovetail.rest.query.versions import MICROVERSIONS
from dovetail.rest.server.door import Door


def describe() -> DoorDescription:
    from dovetail.rest.placement.openapi import DESCRIPTION

    return DESCRIPTION


PLACEMENT = Door("", ROUTES, MICROVERSIONS, problem, describe, ERRORS)
