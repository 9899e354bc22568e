"""Entrance of the console: who sends a request, and whether a page of another site had it sent.

Browsers send cookies, and reach servers on loopback, for whatever page asks them to. A request that
changes something is therefore taken from the console's own pages only: browsers say where a request
comes from in headers that no page can set (`Sec-Fetch-Site`, `Origin`). Scripts of the console add
a header of their own, which forms cannot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders

from dovetail.rest.auth.identity import token_of
from dovetail.rest.auth.noauth import NoAuth
from dovetail.rest.console.addresses import PREFIX
from dovetail.rest.console.session_cookies import OpenedSession, opened_session
from dovetail.rest.query.versions import HEADER, MICROVERSIONS
from dovetail.rest.server.door import Entry, is_at
from dovetail.rest.server.errors import HttpError

if TYPE_CHECKING:
    from starlette.requests import Request

    from dovetail.rest.server.backend import ServerBackend

SCRIPT = "x-dovetail-console"
SAFE = ("GET", "HEAD", "OPTIONS")
OPEN = (f"{PREFIX}/static/", f"{PREFIX}/login", f"{PREFIX}/session", f"{PREFIX}/oidc/")
"""Paths, or how they begin, that are there for those who are not let in yet."""
DEMO_CALLER = "admin"
"""Whoever says nothing where every caller is believed."""


class ConsoleEntrance:
    """Asked by the application for every request below /console."""

    async def enter(self, request: Request, path: str, backend: ServerBackend) -> Entry | None:
        refuse_other_sites(request, through=not is_at(path, PREFIX))
        if path.startswith(OPEN):
            return None
        headers = MutableHeaders(scope={"headers": [*request.scope["headers"]]})
        headers.setdefault(HEADER, MICROVERSIONS.latest)
        if token_of(headers) is None:
            session = await opened_session(request, backend)
            if session is None and isinstance(backend.authenticator, NoAuth):
                session = OpenedSession(DEMO_CALLER)
            if session is not None:
                headers["x-auth-token"] = session.token
                return Entry(headers, session.cookies)
        return Entry(headers)


def refuse_other_sites(request: Request, *, through: bool) -> None:
    """Raises HttpError. `through`: it goes on to another door, where only scripts of ours ask."""
    headers = request.headers
    site = headers.get("sec-fetch-site")
    if through and site in ("cross-site", "same-site"):
        raise HttpError(403, "The console's API is for the console's own pages.")
    if request.method in SAFE:
        return
    own = site == "same-origin" or (site in (None, "none") and is_own_origin(headers))
    if not own:
        raise HttpError(403, "This has to come from a page of this console.")
    if through and headers.get(SCRIPT) != "1":
        raise HttpError(403, f"Requests that change something need the header {SCRIPT}: 1.")


def is_own_origin(headers: Headers) -> bool:
    """Whether the page that asks is of the host that is asked."""
    try:
        origin = urlsplit(headers.get("origin", "")).netloc
    except ValueError:
        return False
    return bool(origin) and origin.lower() == headers.get("host", "").lower()
