"""The fleet as a page: totals by class and by group, and the hosts of it in a table."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from dovetail.rest.console import me
from dovetail.rest.console.markup import Markup, element, link, name, table
from dovetail.rest.console.pages.page import (
    address,
    asked,
    chooser,
    field,
    page,
    page_caller,
    searching,
)
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.policy import MAP

STATES = ("ok", "drained", "dead")
GROUPINGS = ("rack", "aggregate", "cluster", "pool")
MOST_HOSTS = 200
"""In the table; a search finds the others."""


async def show(call: Call) -> Reply:
    """GET /console; who is not shown the map is led to the first view that they are shown."""
    if not call.backend.rules.allows(MAP, call.identity, call.identity.project):
        caller = page_caller(call.identity, call.backend, await me.uses(call.backend))
        if caller.views:
            there = {"location": address(caller.views[0].path)}
            return Reply(303, headers=there, content_type=None)
    fleet = await asked(call, "/dovetail/v1/map")
    given = call.query
    group = given.get("group") if given.get("group") in GROUPINGS else GROUPINGS[0]
    class_ = given.get("class") if given.get("class") in fleet["classes"] else None
    class_ = class_ or next(iter(fleet["classes"]), None)
    text = (given.get("q") or "").lower()
    found = [
        at
        for at, each in enumerate(fleet["hosts"]["name"])
        if text in each.lower() or text == fleet["hosts"]["uuid"][at]
    ]
    return await page(
        call,
        "Fleet",
        "",
        element("h1", "Fleet"),
        element("p", f"{fleet['totals']['hosts']} hosts."),
        totals(fleet),
        searching(
            "",
            chooser("group", "Group by", GROUPINGS, group),
            chooser("class", "Class", fleet["classes"], class_),
            field("q", "Search", given.get("q")),
        ),
        groups(fleet, group or "", class_, found),
        hosts(fleet, group or "", class_, found),
    )


def totals(fleet: Any) -> Markup:
    rows = [
        (class_, one["used"], one["capacity"], one["capacity"] - one["used"])
        for class_, one in fleet["totals"]["classes"].items()
    ]
    return table("What there is", ("Class", "In use", "Capacity", "Free"), rows)


def groups(fleet: Any, group: str, class_: str | None, found: list[int]) -> Markup | None:
    members: dict[int, list[int]] = {}
    for at in found:
        members.setdefault(fleet["hosts"]["group"][group][at], []).append(at)
    names = fleet["groups"][group]
    if not names:
        return None
    rows = [
        (
            name(names[number]) if number >= 0 else "(none)",
            len(some),
            *amounts(fleet, class_, some),
            sum(fleet["hosts"]["state"][at] > 0 for at in some),
        )
        for number, some in sorted(members.items())
    ]
    heads = (group.capitalize(), "Hosts", f"{class_} in use", "Capacity", "Drained or dead")
    return table(f"By {group}", heads, rows)


def amounts(fleet: Any, class_: str | None, hosts: list[int]) -> tuple[int, int]:
    if class_ is None:
        return 0, 0
    used, capacity = fleet["used"][class_], fleet["capacity"][class_]
    return sum(used[at] for at in hosts), sum(capacity[at] for at in hosts)


def hosts(fleet: Any, group: str, class_: str | None, found: list[int]) -> Markup:
    names = fleet["groups"][group]
    of_group = fleet["hosts"]["group"][group]
    rows = [
        (
            link(
                address(f"/hosts/{quote(fleet['hosts']['uuid'][at], safe='')}"),
                name(fleet["hosts"]["name"][at]),
            ),
            name(names[of_group[at]]) if of_group[at] >= 0 else "",
            STATES[fleet["hosts"]["state"][at]],
            *amounts(fleet, class_, [at]),
            f"{fleet['fragmentation'][at]} %",
        )
        for at in found[:MOST_HOSTS]
    ]
    heads = ("Host", group.capitalize(), "State", f"{class_} in use", "Capacity", "Fragmentation")
    shown = table("Hosts", heads, rows)
    if len(found) <= MOST_HOSTS:
        return shown
    more = f"The first {MOST_HOSTS} of {len(found)} hosts; search for others by name."
    return element("div", shown, element("p", more, class_="quiet"))
