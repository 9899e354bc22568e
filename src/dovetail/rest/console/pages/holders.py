"""Holders as pages: all of them by page and filter, and one with what it holds and why there."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from dovetail.rest.console.markup import Markup, definitions, element, join, link, name
from dovetail.rest.console.pages.decisions import decision_table
from dovetail.rest.console.pages.host import amounts
from dovetail.rest.console.pages.page import address, asked, field, long_table, page, searching
from dovetail.rest.console.pages.why import host_link
from dovetail.rest.server.http import Call, Reply

FILTERS = ("q", "project", "user", "type", "after")


async def show_all(call: Call) -> Reply:
    """GET /console/holders."""
    given = {key: call.query.get(key) for key in FILTERS}
    found = await asked(call, "/dovetail/v1/consumers", **given)
    form = searching(
        "/holders",
        field("project", "Project", given["project"]),
        field("type", "Type", given["type"]),
        field("q", "Search", given["q"]),
    )
    more = None
    if found["next"] is not None:
        older = address("/holders", **{**given, "after": str(found["next"])})
        more = element("p", link(older, "Older ones"))
    listed = await holder_table(found["consumers"])
    return await page(call, "Holders", "/holders", element("h1", "Holders"), form, listed, more)


async def show(call: Call) -> Reply:
    """GET /console/holders/{consumer}."""
    key = quote(call.params["consumer"], safe="")
    found = await asked(call, f"/dovetail/v1/consumers/{key}")
    decided = await asked(call, "/dovetail/v1/decisions", consumer=found["uuid"])
    return await page(
        call,
        found["uuid"],
        "/holders",
        element("h1", "Holder ", element("code", found["uuid"])),
        definitions(
            (
                ("Type", found["type"] or "unknown"),
                ("Project", name(found["project"])),
                ("User", name(found["user"])),
                ("Since", found["since"] or ""),
            )
        ),
        await long_table(
            "What it holds",
            ("Of", "Host", "Amounts"),
            (
                (
                    name(one["name"]),
                    host_link(one["host_uuid"], one["host"]),
                    amounts(one["resources"]),
                )
                for one in found["holds"]
            ),
        ),
        element("h2", "Decisions"),
        await decision_table(decided["decisions"]),
    )


async def holder_table(consumers: Any) -> Markup:
    if not consumers:
        return element("p", "Nobody holds anything that matches.")
    rows = (
        (
            link(address(f"/holders/{one['uuid']}"), one["uuid"]),
            one["type"] or "",
            name(one["project"]),
            name(one["user"]),
            one["since"] or "",
            join(held(each) for each in one["holds"]),
        )
        for one in consumers
    )
    return await long_table(
        "Newest first", ("Holder", "Type", "Project", "User", "Since", "Holds"), rows
    )


def held(one: Any) -> Markup:
    return element("div", host_link(one["host_uuid"], one["name"]), f" {amounts(one['resources'])}")
