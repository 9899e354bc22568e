"""The doors of this server: the one list of them, which `cli.run.worker` mounts."""

from __future__ import annotations

from dovetail.rest.console.door import CONSOLE
from dovetail.rest.dovetail.door import DOVETAIL
from dovetail.rest.intents.door import INTENTS
from dovetail.rest.placement.door import PLACEMENT
from dovetail.rest.server.door import Door

DOORS: tuple[Door, ...] = (PLACEMENT, DOVETAIL, INTENTS, CONSOLE)
