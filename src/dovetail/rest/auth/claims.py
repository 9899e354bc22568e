"""From the claims of a token to a caller, as configured."""

from __future__ import annotations

from typing import Any

from dovetail.rest.auth.identity import BadToken, Identity
from dovetail.rest.auth.settings import OidcSettings


def identity_of(claims: dict[str, Any], settings: OidcSettings) -> Identity:
    user = claim(claims, settings.user_claim)
    if not isinstance(user, str) or not user:
        raise BadToken(f"The token does not say who it is for ({settings.user_claim}).")
    project = claim(claims, settings.project_claim) if settings.project_claim else None
    return Identity(
        user=user,
        project=project if isinstance(project, str) else None,
        roles=roles_of(claims, settings),
    )


def roles_of(claims: dict[str, Any], settings: OidcSettings) -> frozenset[str]:
    held = {role for name in settings.role_claims for role in words(claim(claims, name))}
    if not settings.role_names:
        return frozenset(held)
    pairs = (pair.split("=") for pair in settings.role_names)
    return frozenset(role for theirs, role in pairs if theirs in held)


def claim(claims: dict[str, Any], name: str) -> Any:
    """The claim of that name; otherwise what the dots in the name lead to."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def words(value: Any) -> list[str]:
    """A list of strings, or one string with blanks between them: issuers do either."""
    if isinstance(value, str):
        return value.split()
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
