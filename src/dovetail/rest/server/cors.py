"""Pages of other origins: the one that may use this server from a browser, and how."""

from __future__ import annotations

from starlette.datastructures import Headers

from dovetail.rest.placement import versions

MAY_BE_SENT = (
    versions.HEADER,
    "x-auth-token",
    "authorization",
    "content-type",
    "x-openstack-request-id",
)


def cors_headers(allowed: str, asked: Headers) -> dict[str, str]:
    """What to answer to a request with these headers, if pages of origin `allowed` may ask."""
    if asked.get("origin") != allowed:
        return {}
    return {
        "access-control-allow-origin": allowed,
        "access-control-allow-headers": ", ".join(sendable(asked)),
        "access-control-allow-methods": "GET, POST, PUT, DELETE",
        "access-control-expose-headers": f"{versions.HEADER}, x-openstack-request-id",
    }


def sendable(asked: Headers) -> list[str]:
    """Those of the headers that the page wants to send which it may; all, if it names none."""
    named = asked.get("access-control-request-headers", "")
    wanted = {name.strip().lower() for name in named.split(",")} if named else set(MAY_BE_SENT)
    return [name for name in MAY_BE_SENT if name in wanted]
