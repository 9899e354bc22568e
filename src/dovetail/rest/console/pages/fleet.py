"""The fleet as a page: totals by class and by group, and the hosts of it in a table.

Made from the columns of the map, for the API's document of it is megabytes that nobody on this page
looks at.
"""

from __future__ import annotations

from urllib.parse import quote

from dovetail.core.columns import Numbers
from dovetail.rest.console import me
from dovetail.rest.console.markup import Markup, element, join, link, name, table
from dovetail.rest.console.pages.fleet_columns import (
    STATES,
    FleetChoice,
    HostAmounts,
    chosen_hosts,
    class_totals,
    columns_of,
    group_totals,
)
from dovetail.rest.console.pages.page import address, chooser, field, page, page_caller, searching
from dovetail.rest.server.errors import HttpError
from dovetail.rest.server.http import Call, Reply
from dovetail.rest.server.policy import MAP
from dovetail.service.fleet_map.layout import NONE
from dovetail.service.fleet_map.maps import FleetMap
from dovetail.service.fleet_map.usage import fragmentation, in_use_of

STATE_WORDS = ("ok", "drained", "dead")
"""By the number of a state."""
MOST_HOSTS = MOST_GROUPS = 200
"""In a table; a search finds the others."""


async def show(call: Call) -> Reply:
    """GET /console; who is not shown the map is led to the first view that they are shown."""
    if not call.backend.rules.allows(MAP, call.identity, call.identity.project):
        return await elsewhere(call)
    fleet = await call.backend.fleet.maps.now()
    title = element("h1", "Fleet")
    if not fleet.layout.names:
        return await page(call, "Fleet", "", title, how_to_begin())
    choice = FleetChoice.of(call.query, fleet.layout)
    of = columns_of(fleet, choice.class_)
    found = await chosen_hosts(fleet.layout, choice, of)
    return await page(
        call,
        "Fleet",
        "",
        title,
        element("p", f"{len(fleet.layout.names)} hosts."),
        totals(fleet),
        question(fleet, choice),
        groups(fleet, choice, of, found),
        hosts(fleet, choice, of, found),
    )


async def elsewhere(call: Call) -> Reply:
    caller = page_caller(call.identity, call.backend, await me.uses(call.backend))
    if not caller.views:
        raise HttpError(403, f"Policy does not allow {MAP} to be performed.")
    there = {"location": address(caller.views[0].path)}
    return Reply(303, headers=there, content_type=None)


def how_to_begin() -> Markup:
    ways = (
        (
            "Load a fleet: ",
            element("code", "dovetail load FILE"),
            ", or ",
            element("code", "POST /dovetail/v1/fleet"),
        ),
        (
            "start the server on an empty ledger with ",
            element("code", "--demo"),
            " to look around in a fleet that is made up",
        ),
        (
            "register clusters (",
            element("code", "POST /v2/cluster-providers/{provider}/clusters"),
            "): their nodes become hosts.",
        ),
    )
    return join(
        (
            element("p", "There are no hosts in this ledger."),
            element("ul", *(element("li", *each) for each in ways)),
        )
    )


def question(fleet: FleetMap, choice: FleetChoice) -> Markup:
    groupings = [name for name, each in fleet.layout.groups.items() if each.names]
    return searching(
        "",
        chooser("group", "Group by", groupings or [choice.grouping], choice.grouping),
        field("in", "Only this group", choice.group),
        chooser("class", "Class", fleet.layout.classes, choice.class_),
        chooser("state", "State", STATES, choice.state),
        field("q", "Search", choice.text),
    )


def totals(fleet: FleetMap) -> Markup:
    rows = [
        (one.class_, one.used, one.capacity, one.capacity - one.used) for one in class_totals(fleet)
    ]
    return table("What there is", ("Class", "In use", "Capacity", "Free"), rows)


def groups(fleet: FleetMap, choice: FleetChoice, of: HostAmounts, found: Numbers) -> Markup | None:
    grouping = choice.grouping
    if not fleet.layout.groups[grouping].names:
        return None
    listed = group_totals(fleet.layout, grouping, of, found)
    rows = [
        (
            "(none)" if one.name is None else group_link(choice, one.name),
            one.hosts,
            one.used,
            one.capacity,
            one.out,
        )
        for one in listed[:MOST_GROUPS]
    ]
    heads = (
        *(grouping.capitalize(), "Hosts"),
        *(in_use_of_class(choice), "Capacity", "Drained or dead"),
    )
    return join((table(f"By {grouping}", heads, rows), cut(len(rows), len(listed), "groups")))


def group_link(choice: FleetChoice, group: str) -> Markup:
    there = {"group": choice.grouping, "class": choice.class_, "in": group}
    return link(address("", **there), name(group))


def hosts(fleet: FleetMap, choice: FleetChoice, of: HostAmounts, found: Numbers) -> Markup:
    layout, shown = fleet.layout, found[:MOST_HOSTS]
    grouped = layout.groups[choice.grouping]
    split = fragmentation(in_use_of(layout, fleet.usage, shown)).tolist()
    rows = []
    for at, share in zip(shown.tolist(), split, strict=True):
        group = int(grouped.of_host[at])
        there = address(f"/hosts/{quote(layout.uuids[at], safe='')}")
        rows.append(
            (
                link(there, name(layout.names[at])),
                "" if group == NONE else name(grouped.names[group]),
                STATE_WORDS[int(layout.state[at])],
                int(of.used[at]),
                int(of.capacity[at]),
                f"{share} %",
            )
        )
    heads = (
        *("Host", choice.grouping.capitalize(), "State"),
        *(in_use_of_class(choice), "Capacity", "Fragmentation"),
    )
    shown_hosts = table("Hosts", heads, rows) if rows else element("p", "No host matches.")
    return join((shown_hosts, cut(len(rows), len(found), "hosts")))


def in_use_of_class(choice: FleetChoice) -> str:
    return f"{choice.class_} in use" if choice.class_ else "In use"


def cut(shown: int, there: int, what: str) -> Markup | None:
    if shown == there:
        return None
    more = f"The first {shown} of {there} {what}; search for others by name."
    return element("p", more, class_="quiet")
