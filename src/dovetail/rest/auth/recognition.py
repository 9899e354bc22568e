"""From the headers of a request to its caller, or to the answer that turns it away."""

from __future__ import annotations

import math

import structlog
from starlette.datastructures import Headers

from dovetail.rest.auth.identity import Authenticator, BadToken, CannotTell, Identity, token_of
from dovetail.rest.server.errors import HttpError

log = structlog.get_logger("dovetail.rest.auth")


async def recognise(authenticator: Authenticator, headers: Headers) -> Identity:
    try:
        identity = await authenticator.identify(headers)
    except BadToken as error:
        raise refusal(authenticator, headers, str(error)) from error
    except CannotTell as error:
        # The reason may name files and addresses of ours, and the caller may be anybody.
        log.warning("token not checked", error=str(error))
        wait = str(max(1, math.ceil(error.retry_after)))
        told = "The token cannot be checked now."
        raise HttpError(503, told, headers={"retry-after": wait}) from error
    if identity is None:
        raise refusal(authenticator, headers)
    return identity


def refusal(authenticator: Authenticator, headers: Headers, reason: str = "") -> HttpError:
    """401. As RFC 6750 wants it, callers without a token are told how, but not of an error."""
    challenges = authenticator.challenges
    if token_of(headers) is not None:
        told = 'error="invalid_token"'
        if reason:
            told += f', error_description="{quotable(reason)}"'
        challenges = tuple(
            f"{challenge}, {told}" if challenge.startswith("Bearer") else challenge
            for challenge in challenges
        )
    return HttpError(401, reason, headers={"www-authenticate": ", ".join(challenges)})


def quotable(text: str) -> str:
    """The characters that RFC 6750 allows in an error description."""
    return "".join(
        letter if " " <= letter <= "~" and letter not in '"\\' else "'" for letter in text
    )
