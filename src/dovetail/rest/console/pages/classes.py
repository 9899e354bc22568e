"""Resource classes as a page: what devices each selects, how many are free, and what they share."""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.rest.console.markup import Markup, element, name, table
from dovetail.rest.console.pages.page import asked, page
from dovetail.rest.server.http import Call, Reply


async def show(call: Call) -> Reply:
    """GET /console/classes."""
    found = (await asked(call, "/dovetail/v1/classes"))["classes"]
    shared = await asked(call, "/dovetail/v1/classes/availability")
    rows = [
        (
            name(one["name"]),
            one["allocatable"],
            one["requested"],
            one["available"],
            element("code", msgspec.json.encode(one["spec"]).decode()),
        )
        for one in found
    ]
    heads = ("Class", "Units", "Held", "Available", "Selects")
    listed = table("Classes", heads, rows) if rows else element("p", "No class is defined.")
    title = element("h1", "Classes")
    return await page(call, "Classes", "/classes", title, listed, overlaps(shared))


def overlaps(shared: Any) -> Markup | None:
    rows = [
        (name(one["classes"][0]), name(one["classes"][1]), one["units"], one["available"])
        for one in shared["overlaps"]
    ]
    if not rows:
        return None
    heads = ("Class", "and", "Units in both", "Available of them")
    return table("What classes have in common", heads, rows)
