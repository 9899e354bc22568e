"""Decisions as a page: what was asked, what was chosen, and what was passed over."""

from __future__ import annotations

from typing import Any

from dovetail.rest.console.markup import Markup, element, join, link, name
from dovetail.rest.console.pages.page import address, asked, field, long_table, page, searching
from dovetail.rest.server.http import Call, Reply

SHOWN = 50
MOST_PASSED_OVER = 3


async def show(call: Call) -> Reply:
    """GET /console/decisions."""
    consumer, before = call.query.get("consumer"), call.query.get("before")
    found = await asked(
        call, "/dovetail/v1/decisions", consumer=consumer, before=before, limit=str(SHOWN)
    )
    listed = found["decisions"]
    more = None
    if len(listed) == SHOWN:
        older = address("/decisions", consumer=consumer, before=str(listed[-1]["id"]))
        more = element("p", link(older, "Older ones"))
    form = searching("/decisions", field("consumer", "Consumer", consumer))
    title = element("h1", "Decisions")
    return await page(
        call, "Decisions", "/decisions", title, form, await decision_table(listed), more
    )


async def decision_table(decisions: Any) -> Markup:
    if not decisions:
        return element("p", "None is recorded.")
    rows = (
        (
            one["id"],
            one["at"],
            link(address(f"/holders/{one['consumer']}"), one["consumer"]),
            link(address("/why", query=one["query"]), element("code", one["query"])),
            one["outcome"],
            option(one["chosen"]),
            passed_over(one["passed_over"]),
            one["candidates"],
        )
        for one in decisions
    )
    heads = ("No.", "At", "Consumer", "Asked", "Outcome", "Chosen", "Passed over", "Candidates")
    return await long_table("Newest first", heads, rows)


def passed_over(options: Any) -> Markup:
    more = len(options) - MOST_PASSED_OVER
    told = element("div", f"and {more} more", class_="quiet") if more > 0 else None
    return join((*map(option, options[:MOST_PASSED_OVER]), told))


def option(one: Any) -> Markup:
    scores = one.get("scores") or {}
    told = ", ".join(f"{policy} {points}" for policy, points in scores.items())
    places = join(
        element(
            "div",
            name(each["name"] or uuid),
            " " + ", ".join(f"{class_}:{amount}" for class_, amount in each["resources"].items()),
        )
        for uuid, each in one["allocations"].items()
    )
    return join((places, element("div", told, class_="quiet") if told else None))
