"""Doors: APIs that are mounted side by side on one server, each with rules of its own.

A door is a package under `rest/` and a line in `rest/doors.py`. It brings its routes, how versions
are negotiated, what errors look like and its part of the OpenAPI description; the application
looks up the door of each request by its path and has no rule about any one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from dovetail.rest.openapi.operations import DoorDescription
from dovetail.rest.server.errors import DOMAIN_ERRORS, ErrorTable, Problem
from dovetail.rest.server.http import Version
from dovetail.rest.server.routing import Routes


class Versioning(Protocol):
    """How a client and a door agree on a version of the door's API."""

    @property
    def header(self) -> str | None:
        """In which clients ask for a version and answers tell theirs; None: there is no version."""

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
    dated_since: Version = 0

    def negotiate(self, _header: str | None) -> Version:
        return 0

    def answer(self, _version: Version) -> str:
        return ""

    def text(self, _version: Version) -> str:
        return ""


class Door(msgspec.Struct, frozen=True):
    prefix: str
    """All paths that begin so are the door's, whether it has a route for them or not; of two doors
    with the same prefix, the first has them."""
    routes: Routes
    """By path below the prefix."""
    version: Versioning
    problem: Problem
    """The shape of its errors."""
    describe: Callable[[], DoorDescription]
    """Its part of the OpenAPI description; called when somebody first asks for that."""
    errors: ErrorTable = msgspec.field(default_factory=lambda: DOMAIN_ERRORS)
    """How errors of the domain are answered that no handler had anything to add to."""
    headers: Mapping[str, str] = {}
    """What every answer says that does not say otherwise."""
    aliases: tuple[str, ...] = ()
    """Beginnings of routes that are the door's without the prefix, too."""

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

    def has(self, path: str) -> bool:
        return is_below(path, self.prefix) or any(is_at(path, each) for each in self.aliases)


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
