"""No authentication, every caller is believed: Placement's convention for tests.

The token says USER or USER:PROJECT, user `admin` has role admin, an x-roles header replaces the
roles.
"""

from __future__ import annotations

from starlette.datastructures import Headers

from dovetail.rest.auth.identity import Identity


class NoAuth:
    challenges: tuple[str, ...] = ("X-Auth-Token",)

    async def identify(self, headers: Headers) -> Identity | None:
        token = headers.get("x-auth-token")
        if token is None:
            return None
        user, _, project = token.partition(":")
        roles = headers.get("x-roles")
        if roles is not None:
            held = frozenset(role.strip() for role in roles.split(","))
        else:
            held = frozenset({"admin"} if user == "admin" else ())
        return Identity(
            user=user,
            project=headers.get("x-project-id") or project or user,
            roles=held,
            wider_scope=bool(headers.get("openstack-system-scope")),
        )

    async def close(self) -> None:
        pass
