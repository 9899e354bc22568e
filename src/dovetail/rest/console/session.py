"""The session: a caller's token, sealed into a cookie that counts below /console and nowhere else.

Every request has it opened and the token checked as if it had been sent, so a token that is revoked
or expires ends its sessions.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.datastructures import Headers

from dovetail.rest.console.addresses import PREFIX, local_address
from dovetail.rest.console.pages import login
from dovetail.rest.console.session_cookies import (
    LONGEST_CONTENT,
    LONGEST_SESSION,
    SESSION,
    Session,
    parts_of,
    printable,
)
from dovetail.rest.server.errors import HttpError, bad_request
from dovetail.rest.server.http import Call, Reply


async def begin(call: Call) -> Reply:
    """POST /console/session: a token once, from the login form."""
    form = form_of(call)
    token, there = form.get("token", "").strip(), local_address(form.get("next"))
    try:
        cookies = await session_cookies(call, Session(token))
    except HttpError as error:
        if error.status not in (400, 401):
            raise
        return await login.refused(call, error.message or "This token is not known here.", there)
    return Reply(303, headers={"location": there}, content_type=None, cookies=cookies)


async def end(call: Call) -> Reply:
    """POST /console/session/end."""
    where = {"location": f"{PREFIX}/login"}
    return Reply(303, headers=where, content_type=None, cookies=parts_of(call.request, ""))


async def session_cookies(call: Call, session: Session) -> tuple[str, ...]:
    """A session of whoever has the token. Raises HttpError as the way in does."""
    token = printable(session.token)
    await call.admit(Headers({"x-auth-token": token}))
    sealed = await call.backend.seal.close_up(SESSION, session.content())
    if len(sealed) > LONGEST_SESSION:
        raise bad_request(
            f"This token has {len(token)} characters, and a session holds one of up to "
            f"{LONGEST_CONTENT}: have it issued with less in it."
        )
    return parts_of(call.request, sealed)


def form_of(call: Call) -> dict[str, str]:
    try:
        return dict(parse_qsl(call.body.decode("utf-8"), keep_blank_values=True))
    except ValueError as error:
        raise bad_request(f"the form cannot be read: {error}") from error
