"""Host check against DNS rebinding: without authentication, a page must not get in by its own name.

A page of `evil.example` whose name is made to resolve to 127.0.0.1 has a browser send requests here
that carry `Host: evil.example`. Where every caller is believed (`noauth2`), the application answers
those with 421. Ports are not compared: whoever forwards a port may choose another one.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache

from starlette.requests import Request

from dovetail.rest.server.errors import HttpError, bad_request

LOOPBACK = ("localhost", "127.0.0.1", "::1")
HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]/@?#\\\s]*)(?::[0-9]*)?")
"""The host of the header (RFC 9110, 7.2), and its port."""


class AllowedHosts:
    """Names and addresses under which the server may be addressed."""

    def __init__(self, bound: str, more: Iterable[str] = ()) -> None:
        """`bound` is the address that is listened on."""
        self._names = frozenset(map(comparable, (*LOOPBACK, bound, *more)))

    def refuse_foreign(self, request: Request) -> None:
        """Raises HttpError. The address that a connection was made to is none that somebody else's
        name was made to resolve to: it passes, as probes by address need it."""
        asked = request.headers.get("host")
        if asked is None:
            # HTTP/1.0, which browsers do not speak.
            return
        name, server = host_in(asked), request.scope.get("server")
        reached = comparable(server[0]) if server else None
        if name not in self._names and name != reached:
            raise HttpError(
                421,
                f"This server is not known as {name[:255]!r}, and believes every caller: that "
                "might be a page which uses somebody's browser. Address it by a name of its own, "
                "such as localhost, or add this one to `allowed_hosts`.",
            )


def refuse_unclear_host(request: Request) -> None:
    """As HTTP demands (RFC 9112, 3.2): one Host in a request of HTTP/1.1, and one that can be read.
    Whoever reads another one than we do would be led astray."""
    found = request.headers.getlist("host")
    if len(found) > 1:
        raise bad_request("There is more than one Host header.")
    if not found and request.scope.get("http_version") == "1.1":
        raise bad_request("A request of HTTP/1.1 needs a Host header.")
    if found:
        host_in(found[0])


def host_in(header: str) -> str:
    match = HOST.fullmatch(header.strip())
    if match is None:
        raise bad_request("The Host header is no host with or without a port.")
    return comparable(match.group(1).strip("[]"))


@lru_cache(256)
def comparable(host: str) -> str:
    """One writing for all of a name or an address."""
    try:
        return str(ipaddress.ip_address(host.strip("[]").partition("%")[0]))
    except ValueError:
        return host.lower().removesuffix(".")
