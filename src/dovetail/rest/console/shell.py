"""The frame of every page: its head, the navigation, and the place where a view stands.

The console's script, where it is built, replaces what is in `<main id="view">`; everything else
stays as the server made it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dovetail.rest.console import static_files
from dovetail.rest.console.addresses import PREFIX
from dovetail.rest.console.markup import Child, Markup, element, isolated_text, join, link, name

HTML = "text/html; charset=utf-8"


class NavigationLink(msgspec.Struct, frozen=True):
    path: str
    label: str
    right: str
    """What its reader has to be allowed, as `me` names it."""
    use: str | None = None
    """What a deployment has to use for the page to be of use."""


NAVIGATION = (
    NavigationLink("", "Fleet", "map"),
    NavigationLink("/why", "Why / why not", "explain"),
    NavigationLink("/holders", "Holders", "holders"),
    NavigationLink("/decisions", "Decisions", "explain"),
    NavigationLink("/audit", "Audit", "audit"),
    NavigationLink("/classes", "Classes", "classes", "classes"),
    NavigationLink("/machines", "Machines", "holders", "machines"),
    NavigationLink("/intents", "Intents", "intents", "intents"),
)


class PageCaller(msgspec.Struct, frozen=True):
    """Whom a page is made for."""

    name: str
    may: tuple[str, ...]
    """What the script may ask for without being refused."""
    can_leave: bool
    """There is a way out: a session that ends."""
    uses: Mapping[str, bool]
    """What the deployment uses, as far as that is known."""

    @property
    def views(self) -> list[NavigationLink]:
        """What is shown to them, and there is something to show of."""
        return [
            each
            for each in NAVIGATION
            if each.right in self.may and (each.use is None or self.uses.get(each.use, False))
        ]


def framed(title: str, here: str, caller: PageCaller, *content: Child) -> bytes:
    """A page of a view, at the path `here` below the prefix."""
    header = element(
        "header",
        element("span", "Dovetail", class_="brand"),
        navigation(here, caller),
        who(caller),
        class_="top",
    )
    return document(title, header, content, caller=caller)


def plain_page(title: str, *content: Child, refresh: str | None = None) -> bytes:
    """A page for those who are not known (yet); `refresh`: where it goes on by itself."""
    home = link(PREFIX, "Dovetail", class_="brand")
    header = element("header", home, class_="top")
    return document(title, header, content, refresh=refresh)


def navigation(here: str, caller: PageCaller) -> Markup:
    links = (
        link(
            f"{PREFIX}{each.path}",
            each.label,
            aria_current="page" if each.path == here else None,
        )
        for each in caller.views
    )
    return element(
        "nav", element("ul", *(element("li", each) for each in links)), aria_label="Views"
    )


def who(caller: PageCaller) -> Markup:
    button = element(
        "form",
        element("button", "Sign out", type="submit"),
        method="post",
        action=f"{PREFIX}/session/end",
    )
    way_out = (" ", button) if caller.can_leave else ()
    return element("span", name(caller.name), *way_out, class_="caller")


def document(
    title: str,
    header: Markup,
    content: tuple[Child, ...],
    *,
    caller: PageCaller | None = None,
    refresh: str | None = None,
) -> bytes:
    """The whole of a page; with a script, if it has a caller."""
    built = static_files.ConsoleBundle() if caller is None else static_files.bundle()
    at = f"{PREFIX}/static"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        None
        if refresh is None
        else element("meta", http_equiv="refresh", content=f"0; url={refresh}"),
        element("title", f"{isolated_text(title)} · Dovetail"),
        element("link", rel="icon", href="data:,"),
        element("link", rel="stylesheet", href=f"{at}/{static_files.PLAIN_STYLE}"),
        *(element("link", rel="stylesheet", href=f"{at}/{each}") for each in built.styles),
        *(element("script", type="module", src=f"{at}/{each}") for each in built.scripts),
    )
    body = element(
        "body",
        link("#view", "Skip to the content", class_="skip"),
        header,
        element("main", *content, id="view", tabindex="-1"),
        data_may=None if caller is None else " ".join(caller.may),
    )
    page = join((Markup("<!DOCTYPE html>\n"), element("html", head, body, lang="en")))
    return page.encode("utf-8", "replace")
