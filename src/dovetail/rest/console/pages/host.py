"""A host as a page: its tree, each unit with its holders, and what was decided about it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from dovetail.rest.console.markup import Markup, element, join, link, name
from dovetail.rest.console.pages.decisions import decision_table
from dovetail.rest.console.pages.page import address, asked, long_table, page
from dovetail.rest.server.http import Call, Reply

DEEPER = "\u2007\u2007"
"""Figure spaces before a name, by depth."""
MOST_PROVIDERS = 2000
"""Nobody reads a page of more."""


async def show(call: Call) -> Reply:
    """GET /console/hosts/{host}."""
    key = quote(call.params["host"], safe="")
    found = await asked(call, f"/dovetail/v1/hosts/{key}")
    providers = found["providers"][:MOST_PROVIDERS]
    return await page(
        call,
        found["name"],
        "/hosts",
        element("h1", name(found["name"])),
        element("p", element("code", found["uuid"])),
        cut(len(providers), found),
        await units(providers),
        await holders(providers),
        await properties(providers),
        element("h2", "Decisions"),
        await decision_table(found["decisions"]),
    )


def cut(shown: int, found: Any) -> Markup | None:
    there = len(found["providers"])
    if shown == there:
        return None
    return element(
        "p",
        f"The first {shown} of {there} providers; all are in ",
        element("code", f"GET /dovetail/v1/hosts/{found['uuid']}"),
        ".",
    )


async def units(providers: Any) -> Markup:
    rows = (
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
    )
    heads = ("Provider", "Class", "In use", "Capacity", "Free", "Reserved")
    return await long_table("Units", heads, rows)


NOTHING = {"used": 0, "capacity": 0, "reserved": 0}


async def holders(providers: Any) -> Markup:
    if not any(each["holders"] for each in providers):
        return element("p", "Nobody holds anything here.")
    rows = (
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
    )
    heads = ("Holder", "Of", "Holds", "Type", "Project", "User", "Since")
    return await long_table("Who holds it", heads, rows)


async def properties(providers: Any) -> Markup | None:
    described = [
        each for each in providers if each["traits"] or each["attributes"] or each["aggregates"]
    ]
    if not described:
        return None
    rows = (
        (
            name(each["name"]),
            ", ".join(each["traits"]),
            join(
                element("div", name(key), " = ", name(value))
                for key, value in each["attributes"].items()
            ),
            ", ".join(each["aggregates"]),
        )
        for each in described
    )
    heads = ("Provider", "Traits", "Attributes", "Aggregates")
    return await long_table("What it is", heads, rows)


def amounts(resources: dict[str, int]) -> str:
    return ", ".join(f"{class_}:{amount}" for class_, amount in resources.items())
