"""Machines as a page: stock per shape, who holds units of it and until when, who waits and why."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from dovetail.rest.console.markup import Child, Markup, element, isolated, link, name, table
from dovetail.rest.console.pages.page import address, asked, page
from dovetail.rest.server.http import Call, Reply

NOT_KNOWN = "not known"
"""The operator told nothing of the group."""
STOCK = ("Shape", "Max", "Reserved", "Used", "Waiting")
HOLDERS = ("Holder", "Pod", "Shape", "For", "Node", "Since", "Until")
QUEUE = ("Place", "Pod", "Shape", "For", "Since", "Reason", "Why")
TIMELINE = ("Pod", "Holds", "Since", "Until")
WIDTH, HEIGHT = 600, 16
"""Of a bar's drawing, in its own units."""


async def show(call: Call) -> Reply:
    """GET /console/machines."""
    found = await asked(call, "/dovetail/v1/machines")
    now = datetime.now(UTC)
    title = element("h1", "Machines")
    parts = [part for group in found["groups"] for part in shown_group(group, now)]
    nothing = None if parts else element("p", "No machines are sold from this ledger.")
    return await page(call, "Machines", "/machines", title, nothing, *parts)


def shown_group(group: Any, now: datetime) -> list[Markup]:
    is_told = group["queue"] is not None
    stock = [
        (
            name(one["type"]),
            one["max"],
            one["reserved"],
            one["used"],
            one["waiting"] if is_told else NOT_KNOWN,
        )
        for one in group["types"]
    ]
    held = [
        (
            link(address(f"/holders/{one['consumer']}"), one["consumer"]),
            name(one["pod"]) if one["pod"] else "",
            name(one["type"]),
            "stock" if one["stock"] else name(one["project"]),
            name(one["node"]),
            one["from"],
            end_words(one, is_told),
        )
        for one in group["holders"]
    ]
    guests = [one for one in group["holders"] if not one["stock"]]
    return [
        element("h2", name(f"{group['cluster']}{group['name']}")),
        table("Stock", STOCK, stock)
        if stock
        else element("p", "Nobody sells units of this group."),
        table("Holders", HOLDERS, held) if held else element("p", "Nobody holds a unit."),
        *([timeline(guests, now)] if guests else []),
        *shown_queue(group),
    ]


def end_words(one: Any, is_told: bool) -> Child:
    if one["stock"]:
        return ""
    return one["until"] or ("no end" if is_told else NOT_KNOWN)


def shown_queue(group: Any) -> list[Markup]:
    queue = group["queue"]
    if queue is None:
        return [element("p", "No operator has told who waits.")]
    told = element("p", "As the operator of the cluster told at ", group["told_at"], ".")
    if not queue:
        return [element("p", "Nobody waits."), told]
    rows = [
        (
            one["position"],
            name(one["pod"]),
            name(one["type"]),
            link(address("/holders", project=one["project"]), name(one["project"])),
            one["since"],
            name(one["reason"]) if one["reason"] else "its turn is to come",
            isolated(one["message"]),
        )
        for one in queue
    ]
    return [table("Queue", QUEUE, rows), told]


def timeline(guests: Sequence[Any], now: datetime) -> Markup:
    """Holds over time as bars, with a line at now; the table of holders has the same in words."""
    ordered = sorted(guests, key=lambda one: one["from"])
    ends = [one["until"] for one in ordered if one["until"]]
    times = [now, *(datetime.fromisoformat(each) for each in (ordered[0]["from"], *ends))]
    start, end = min(times), max(times)
    # What has no end goes on to the edge, which is later than all that has.
    span = (start, end + max((end - start) / 20, timedelta(minutes=1)))
    rows = [
        (
            name(one["pod"] or one["consumer"]),
            bar(one, span, now),
            one["from"],
            one["until"] or "…",
        )
        for one in ordered
    ]
    return table(f"Holds over time; the line is now, {now:%Y-%m-%d %H:%M} UTC", TIMELINE, rows)


def bar(one: Any, span: tuple[datetime, datetime], now: datetime) -> Markup:
    def at(time: datetime) -> int:
        start, end = span
        return round(WIDTH * ((time - start) / (end - start)))

    first = at(datetime.fromisoformat(one["from"]))
    last = at(datetime.fromisoformat(one["until"])) if one["until"] else WIDTH
    return element(
        "svg",
        element("rect", class_="hold", x=first, y=3, width=max(last - first, 2), height=10),
        element("rect", class_="now", x=max(at(now) - 1, 0), y=0, width=2, height=HEIGHT),
        class_="holds",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        width=WIDTH // 2,
        height=HEIGHT,
        preserveAspectRatio="none",
        aria_hidden="true",
    )
