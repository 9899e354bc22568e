"""What is mounted on a server: its doors, one router over all of them, and where a path leads.

The application asks it for the way of each request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from starlette.requests import Request

from dovetail.rest.openapi import serving
from dovetail.rest.server import health, metrics
from dovetail.rest.server.door import Door, Entrance, Unversioned, by_prefix, door_at, is_below
from dovetail.rest.server.errors import problem_details
from dovetail.rest.server.routing import Endpoint, Router, Routes


def server_door(doors: Sequence[Door]) -> Door:
    """What the server itself answers, whatever is mounted on it: health, metrics, description."""

    def described() -> dict[str, Any]:
        from dovetail.rest.openapi.document import document

        return document(doors, own)

    routes: Routes = {
        "/livez": {"GET": Endpoint(health.livez, public=True)},
        "/readyz": {"GET": Endpoint(health.readyz, public=True)},
        "/metrics": {"GET": Endpoint(metrics.show, public=True)},
        serving.PATH: {"GET": Endpoint(serving.endpoint(described), public=True)},
    }
    own = Door("", routes, Unversioned(), problem_details, serving.describe)
    return own


def mounted(doors: Sequence[Door]) -> tuple[Door, ...]:
    """The doors and the server's own, in the order in which they are looked at."""
    return by_prefix((*doors, server_door(doors)))


class Way(NamedTuple):
    """Where a request leads."""

    path: str
    """As the doors know it."""
    door: Door
    entrance: Entrance | None
    """Of the door that it came in by."""


class Site:
    """The doors that are mounted, and one router over the routes of all."""

    def __init__(self, doors: Sequence[Door]) -> None:
        self.doors = doors
        routes = {
            path: methods
            for door in doors
            for path, methods in {**door.also_mounted(), **door.mounted()}.items()
        }
        self.router = Router(routes)
        self.public = frozenset(
            path for path, methods in routes.items() if all(one.public for one in methods.values())
        )
        versions = (door.version for door in doors)
        self.newest = {each.header: each.latest for each in versions if each.header is not None}
        """What to say to be spoken to in the newest version of each door, by header."""
        self.version_headers = tuple(self.newest)

    def way(self, request: Request) -> Way:
        path = raw_path(request)
        door = door_at(self.doors, path)
        if door.entrance is None:
            return Way(path, door, None)
        passage = f"{door.prefix}{door.passage}"
        if door.passage and is_below(path, passage):
            inner = path[len(passage) :]
            return Way(inner, door_at(self.doors, inner), door.entrance)
        return Way(path, door, door.entrance)


def raw_path(request: Request) -> str:
    """The path as sent: names in it may hold encoded slashes."""
    raw: bytes = request.scope.get("raw_path") or request.scope["path"].encode()
    return raw.partition(b"?")[0].decode("latin-1") or "/"
