"""From method and path to the endpoint that answers, by one table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from dovetail.rest.server.errors import HttpError, not_found
from dovetail.rest.server.http import Call, Reply, Version

Handler = Callable[[Call], Awaitable[Reply]]


class Endpoint(msgspec.Struct, frozen=True):
    """One method of one path."""

    handler: Handler
    action: str | None = None
    """What the policy knows it by; None needs no permission."""
    since: Version = 0
    missing: int = 404
    """The answer to clients of an older version."""
    takes_json: bool = False
    gives_json: bool = False
    public: bool = False
    """Answers without a token."""
    streams: bool = False
    """Reads the body by itself."""
    reads: bool = False
    """Changes nothing, whatever the method."""
    claims: bool = False
    """Claims hardware: what is turned away before it is a claim counts as an invalid one."""


Routes = Mapping[str, Mapping[str, Endpoint]]
Shaped = tuple[str, dict[int, str], Mapping[str, Endpoint]]
"""The route, the names of its placeholders by their place, and its methods."""


OWN = ("dovetail", "v1")
"""How all of Dovetail's own routes begin."""


class Match(NamedTuple):
    """The endpoint of a request, the names in its path, and the route as the table has it."""

    endpoint: Endpoint
    params: dict[str, str]
    route: str


class Router:
    """Finds routes by their segments: a dictionary step per segment, whatever their number."""

    def __init__(self, routes: Routes) -> None:
        self._fixed: dict[tuple[str, ...], Mapping[str, Endpoint]] = {}
        self._shaped: dict[tuple[str | None, ...], Shaped] = {}
        for path, methods in routes.items():
            segments = tuple(path.strip("/").split("/"))
            if "{" not in path:
                self._fixed[segments] = methods
            else:
                names = {at: part[1:-1] for at, part in enumerate(segments) if part[0] == "{"}
                shape = tuple(None if at in names else part for at, part in enumerate(segments))
                self._shaped[shape] = (path, names, methods)

    def find(self, method: str, raw_path: str) -> Match:
        route, methods, params = self._resolve(raw_path)
        endpoint = methods.get(method)
        if endpoint is None:
            raise HttpError(
                405,
                "The method specified is not allowed for this resource.",
                headers={"allow": ", ".join(methods)},
            )
        return Match(endpoint, params, route)

    def _resolve(self, raw_path: str) -> tuple[str, Mapping[str, Endpoint], dict[str, str]]:
        segments = tuple(unquote(part) for part in raw_path[1:].split("/"))
        methods = self._fixed.get(segments)
        if methods is not None:
            return f"/{'/'.join(segments)}", methods, {}
        # Placeholders stand at every second place: /things/{thing}/parts/{part}.
        fixed = len(OWN) if segments[:2] == OWN else 0
        shape = tuple(None if at % 2 and at >= fixed else part for at, part in enumerate(segments))
        found = self._shaped.get(shape)
        if found is None:
            raise not_found()
        route, names, methods = found
        params = {name: segments[at] for at, name in names.items()}
        if not all(params.values()):
            raise not_found()
        return route, methods, params
