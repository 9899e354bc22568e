"""Router: a trie from path and method to the endpoint of a door's route table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

import msgspec

from dovetail.rest.server.errors import HttpError, not_found
from dovetail.rest.server.http import Call, Reply, Version

Handler = Callable[[Call], Awaitable[Reply]]

QUERY = "QUERY"
"""Asks as GET does; no part of OpenAPI 3.1, so that nothing describes it."""


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
    queried: bool = False
    """A GET that is there by the method QUERY, too."""
    audited: bool = False
    """Leaves a line in the audit log, whatever the method."""
    claims: bool = False
    """Claims hardware: what is turned away before it is a claim counts as an invalid one."""


Routes = Mapping[str, Mapping[str, Endpoint]]


class Match(NamedTuple):
    """The endpoint of a request, the names in its path, and the route as the table has it."""

    endpoint: Endpoint
    params: dict[str, str]
    route: str


class Branch:
    """A place in the tree of paths: what may come next, and what ends here."""

    def __init__(self) -> None:
        self.fixed: dict[str, Branch] = {}
        self.placeholder: Branch | None = None
        self.route = ""
        self.names: dict[int, str] = {}
        """Of the placeholders on the way here, by the place of their segment."""
        self.methods: Mapping[str, Endpoint] = {}


class Router:
    """Trie of path segments: a dictionary step for each, however many routes there are.

    Where a segment is fixed in one route and a placeholder in another, the fixed one has it.
    """

    def __init__(self, routes: Routes) -> None:
        self._root = Branch()
        for path, methods in routes.items():
            self._add(path, methods)

    def _add(self, path: str, methods: Mapping[str, Endpoint]) -> None:
        branch, names = self._root, dict[int, str]()
        for at, segment in enumerate(path[1:].split("/")):
            if segment.startswith("{"):
                names[at] = segment[1:-1]
                branch.placeholder = branch = branch.placeholder or Branch()
            else:
                branch = branch.fixed.setdefault(segment, Branch())
        branch.route, branch.names, branch.methods = path, names, methods

    def find(self, method: str, raw_path: str) -> Match:
        segments = [unquote(part) for part in raw_path[1:].split("/")]
        branch = self._branch(segments)
        endpoint = branch.methods.get(method)
        if method == QUERY and (get := branch.methods.get("GET")) is not None and get.queried:
            endpoint = get
        if endpoint is None:
            raise HttpError(
                405,
                "The method specified is not allowed for this resource.",
                headers={"allow": ", ".join(branch.methods)},
            )
        params = {name: segments[at] for at, name in branch.names.items()}
        return Match(endpoint, params, branch.route)

    def _branch(self, segments: Sequence[str]) -> Branch:
        """Where the path ends. Raises HttpError if there is nothing."""
        branch: Branch | None = self._root
        for segment in segments:
            assert branch is not None
            branch = branch.fixed.get(segment) or (branch.placeholder if segment else None)
            if branch is None:
                break
        if branch is None or not branch.methods:
            raise not_found()
        return branch
