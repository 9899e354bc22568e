"""Every address of the console, by its path below /console."""

from __future__ import annotations

from dovetail.rest.console import me, oidc_login, session, static_files
from dovetail.rest.console.pages import (
    audit,
    classes,
    decisions,
    fleet,
    holders,
    host,
    intents,
    login,
    machines,
    why,
)
from dovetail.rest.server.routing import Endpoint, Handler, Routes


def view(handler: Handler) -> dict[str, Endpoint]:
    """What a reader may see is asked where the page asks for it."""
    return {"GET": Endpoint(handler), "HEAD": Endpoint(handler)}


ROUTES: Routes = {
    "": view(fleet.show),
    "/": view(fleet.show),
    "/why": view(why.show),
    "/hosts/{host}": view(host.show),
    "/holders": view(holders.show_all),
    "/holders/{consumer}": view(holders.show),
    "/decisions": view(decisions.show),
    "/audit": view(audit.show),
    "/classes": view(classes.show),
    "/machines": view(machines.show),
    "/intents": view(intents.show_all),
    "/intents/{project}/{app}/{version}/{group}": view(intents.show),
    "/me": view(me.show),
    "/login": view(login.show),
    "/session": {"POST": Endpoint(session.begin)},
    "/session/end": {"POST": Endpoint(session.end)},
    "/oidc/start": view(oidc_login.start),
    "/oidc/callback": {"GET": Endpoint(oidc_login.callback, audited=True)},
    "/static/{file}": view(static_files.show),
    "/static/{folder}/{file}": view(static_files.show),
}
