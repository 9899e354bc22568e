"""Doors: APIs that are mounted side by side on one server, each with rules of its own.

A door is a package under `rest/` and a line in `rest/doors.py`. It brings its routes, how versions
are negotiated, what errors look like and its part of the OpenAPI description; the application
looks up the door of each request by its path and has no rule about any one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

import msgspec

from dovetail.rest.openapi.operations import DoorDescription
from dovetail.rest.server.errors import DOMAIN_ERRORS, ErrorTable, Problem
from dovetail.rest.server.http import Version
from dovetail.rest.server.routing import Routes

if TYPE_CHECKING:
    from starlette.datastructures import Headers
    from starlette.requests import Request

    from dovetail.rest.server.backend import ServerBackend


class Versioning(Protocol):
    """How a client and a door agree on a version of the door's API."""

    @property
    def header(self) -> str | None:
        """In which clients ask for a version and answers tell theirs; None: there is no version."""

    @property
    def latest(self) -> str:
        """What to send in the header to be spoken to in the newest version."""

    @property
    def dated_since(self) -> Version:
        """From this version on, answers say when what they show was last changed."""

    def negotiate(self, header: str | None) -> Version:
        """The version that is spoken with a client that sent this. Raises HttpError."""

    def answer(self, version: Version) -> str:
        """What an answer has in the header."""

    def text(self, version: Version) -> str:
        """For logs."""


class Unversioned:
    """An API with one version, of which nobody speaks."""

    header: str | None = None
    latest: str = ""
    dated_since: Version = 0

    def negotiate(self, _header: str | None) -> Version:
        return 0

    def answer(self, _version: Version) -> str:
        return ""

    def text(self, _version: Version) -> str:
        return ""


class Entry(msgspec.Struct, frozen=True):
    """Somebody who came in."""

    headers: Headers
    """The head of the request as if its caller had sent a token."""
    cookies: tuple[str, ...] = ()
    """To be set with the answer, each with its attributes."""


class Entrance(Protocol):
    """How a door recognises callers that do not send a token in a header."""

    async def enter(self, request: Request, path: str, backend: ServerBackend) -> Entry | None:
        """Who sends a request; None: it needs no caller.

        `path` is where the request leads, as the doors know it. Raises HttpError: it may not come
        in this way.
        """


class Door(msgspec.Struct, frozen=True):
    prefix: str
    """All paths that begin so are the door's, whether it has a route for them or not; of two doors
    with the same prefix, the first has them."""
    routes: Routes
    """By path below the prefix."""
    version: Versioning
    problem: Problem
    """The shape of its errors."""
    describe: Callable[[], DoorDescription] | None
    """Its part of the OpenAPI description, asked for when somebody first wants that; None: it has
    pages for people, and no API."""
    errors: ErrorTable = msgspec.field(default_factory=lambda: DOMAIN_ERRORS)
    """How errors of the domain are answered that no handler had anything to add to."""
    headers: Mapping[str, str] = {}
    """What every answer says that does not say otherwise."""
    aliases: tuple[str, ...] = ()
    """Beginnings of routes that are the door's without the prefix, too."""
    entrance: Entrance | None = None
    """None: callers send a token in a header."""
    passage: str = ""
    """Below the prefix and this, all doors' paths are there again, for those who come in here."""

    private: tuple[str, ...] = ()
    """Beginnings of paths below the prefix whose queries are not for the log, whatever the method
    and whether there is a route."""

    def mounted(self) -> Routes:
        """The routes by their whole path."""
        return {f"{self.prefix}{path}": methods for path, methods in self.routes.items()}

    def also_mounted(self) -> Routes:
        """Those that are there without the prefix, too."""
        return {
            path: methods
            for path, methods in self.routes.items()
            if any(is_at(path, alias) for alias in self.aliases)
        }

    def is_private(self, path: str) -> bool:
        return any(is_at(unquote(path), f"{self.prefix}{each}") for each in self.private)

    def has(self, path: str) -> bool:
        own = is_below(path, self.prefix) or (path == self.prefix and "" in self.routes)
        return own or any(is_at(path, each) for each in self.aliases)


def is_below(path: str, prefix: str) -> bool:
    return not prefix or path.startswith(f"{prefix}/")


def is_at(path: str, alias: str) -> bool:
    return path == alias or is_below(path, alias)


def by_prefix(doors: Sequence[Door]) -> tuple[Door, ...]:
    """The longest prefix first, as `door_at` looks at them."""
    return tuple(sorted(doors, key=lambda door: -len(door.prefix)))


def door_at(doors: Sequence[Door], path: str) -> Door:
    """The door that a path leads to; the last one has no prefix."""
    return next(door for door in doors if door.has(path))
