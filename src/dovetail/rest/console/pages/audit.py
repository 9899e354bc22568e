"""The audit as a page: what is wrong in the ledger, and what healing would mend."""

from __future__ import annotations

from dovetail.rest.console.markup import element, name, sentence
from dovetail.rest.console.pages.page import asked, long_table, page
from dovetail.rest.console.pages.why import host_link
from dovetail.rest.server.http import Call, Reply


async def show(call: Call) -> Reply:
    """GET /console/audit."""
    found = await asked(call, "/dovetail/v1/audit")
    faults = found["faults"]
    checked = ", ".join(f"{count} {rows}" for rows, count in found["checked"].items())
    rows = (
        (
            one["kind"],
            sentence(one["words"], (one.get("provider"), one.get("consumer"))),
            host_link(one.get("provider_uuid"), one["provider"]) if one.get("provider") else "",
            name(one.get("consumer") or ""),
            "yes" if one["healable"] else "no",
        )
        for one in faults
    )
    heads = ("Fault", "What is wrong", "Provider", "Consumer", "Would be healed")
    listed = element("p", "Nothing is wrong.")
    if faults:
        listed = await long_table("Faults", heads, rows)
    return await page(
        call,
        "Audit",
        "/audit",
        element("h1", "Audit"),
        element("p", f"Looked at {checked}."),
        listed,
    )
