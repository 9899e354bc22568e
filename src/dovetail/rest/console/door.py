"""The console's door, /console: pages for people, made from what the other doors answer.

Below /console/api the paths of all doors are there again, for callers that a session cookie names:
the pages' scripts ask there, and no handler is written twice.
"""

from __future__ import annotations

from dovetail.rest.console.addresses import PASSAGE, PREFIX
from dovetail.rest.console.entrance import ConsoleEntrance
from dovetail.rest.console.refusals import refusal
from dovetail.rest.console.routes import ROUTES
from dovetail.rest.server.door import Door, Unversioned

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self' data:",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)


CONSOLE = Door(
    PREFIX,
    ROUTES,
    Unversioned(),
    refusal,
    None,
    headers={
        "cache-control": "no-store",
        "content-security-policy": CONTENT_SECURITY_POLICY,
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    },
    entrance=ConsoleEntrance(),
    passage=PASSAGE,
    private=("/session", "/oidc", "/login"),
)
