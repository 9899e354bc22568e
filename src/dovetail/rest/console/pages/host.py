"""A host as a page: its tree, each unit with its holders, and what was decided about it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from dovetail.rest.console.markup import Child, Markup, element, join, link, name, table
from dovetail.rest.console.pages.decisions import decision_table
from dovetail.rest.console.pages.page import address, asked, page
from dovetail.rest.server.http import Call, Reply

DEEPER = "\u2007\u2007"
"""Figure spaces before a name, by depth."""


async def show(call: Call) -> Reply:
    """GET /console/hosts/{host}."""
    key = quote(call.params["host"], safe="")
    found = await asked(call, f"/dovetail/v1/hosts/{key}")
    return await page(
        call,
        found["name"],
        "/hosts",
        element("h1", name(found["name"])),
        element("p", element("code", found["uuid"])),
        units(found["providers"]),
        holders(found["providers"]),
        *properties(found["providers"]),
        element("h2", "Decisions"),
        decision_table(found["decisions"]),
    )


def units(providers: Any) -> Markup:
    rows = [
        (
            join((DEEPER * each["depth"], name(each["name"]))),
            class_,
            one["used"],
            one["capacity"],
            one["capacity"] - one["used"],
            one["reserved"],
        )
        for each in providers
        for class_, one in (each["inventories"] or {"": NOTHING}).items()
    ]
    heads = ("Provider", "Class", "In use", "Capacity", "Free", "Reserved")
    return table("Units", heads, rows)


NOTHING = {"used": 0, "capacity": 0, "reserved": 0}


def holders(providers: Any) -> Markup:
    rows = [
        (
            link(address(f"/holders/{one['consumer']}"), one["consumer"]),
            name(each["name"]),
            amounts(one["resources"]),
            one["type"] or "",
            name(one["project"]),
            name(one["user"]),
            one["since"],
        )
        for each in providers
        for one in each["holders"]
    ]
    if not rows:
        return element("p", "Nobody holds anything here.")
    heads = ("Holder", "Of", "Holds", "Type", "Project", "User", "Since")
    return table("Who holds it", heads, rows)


def properties(providers: Any) -> tuple[Child, ...]:
    rows = [
        (
            name(each["name"]),
            ", ".join(each["traits"]),
            join(
                element("div", name(f"{key} = {value}"))
                for key, value in each["attributes"].items()
            ),
            ", ".join(each["aggregates"]),
        )
        for each in providers
        if each["traits"] or each["attributes"] or each["aggregates"]
    ]
    if not rows:
        return ()
    heads = ("Provider", "Traits", "Attributes", "Aggregates")
    return (table("What it is", heads, rows),)


def amounts(resources: dict[str, int]) -> str:
    return ", ".join(f"{class_}:{amount}" for class_, amount in resources.items())
