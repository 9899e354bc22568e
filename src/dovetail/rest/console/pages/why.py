"""Why a request fits or does not, as a page: the funnel, nearest misses, and what would help."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote

from dovetail.rest.console.markup import Child, Markup, element, link, name, sentence, table
from dovetail.rest.console.pages.page import address, asked, field, names_in, page, problem
from dovetail.rest.server.errors import HttpError
from dovetail.rest.server.http import Call, Reply

EXAMPLE = "resources_VM=VCPU:8&resources_ACC=FPGA:1&same_subtree=_VM,_ACC"
VERDICTS = {"fits": "It fits", "not_now": "It does not fit now", "never": "It never fits"}


async def show(call: Call) -> Reply:
    """GET /console/why."""
    query, host = (call.query.get("query") or "").strip(), call.query.get("host")
    moves = call.query.get("moves") == "1"
    content: tuple[Child, ...] = ()
    if query:
        try:
            content = explained(await explanation(call, query, host, moves=moves), query)
        except HttpError as error:
            content = (problem(error, (*values_in(query), host)),)
    title = "Why / why not"
    form = question(query, host, moves=moves)
    return await page(call, title, "/why", element("h1", title), form, *content)


async def explanation(call: Call, query: str, host: str | None, *, moves: bool) -> Any:
    """The query is one of candidates, already encoded as such."""
    parts = [quote(query.lstrip("?"), safe="=&,:+%*~!@()[]-._/")]
    parts += [f"host={quote(host, safe='')}"] if host else []
    parts += ["moves=1"] if moves else []
    return await asked(call, f"/dovetail/v1/explain?{'&'.join(parts)}")


def question(query: str, host: str | None, *, moves: bool) -> Markup:
    return element(
        "form",
        element(
            "div",
            element("label", "Request, as a query of allocation candidates", for_="query"),
            element("textarea", query, id="query", name="query", rows=3, placeholder=EXAMPLE),
        ),
        field("host", "Only this host", host),
        element(
            "div",
            element("input", type="checkbox", id="moves", name="moves", value="1", checked=moves),
            element("label", "Whom to move", for_="moves"),
        ),
        element("button", "Explain", type="submit"),
        method="get",
        action=address("/why"),
        class_="asked",
    )


def values_in(query: str) -> set[str]:
    """What a query asks for by name: those are no names of ours, but sentences repeat them."""
    values = {value for _, value in parse_qsl(query.lstrip("?"))}
    return values | {part for value in values for part in re.split("[=,:]", value)}


def explained(found: Any, query: str) -> tuple[Child, ...]:
    names = names_in(found) | values_in(query)
    return (
        element("h2", VERDICTS.get(found["verdict"], found["verdict"])),
        element("p", sentence(found["summary"], names)),
        funnel(found, names),
        *nearest(found, names),
        *helping(found, names),
        *moving(found, names),
        element("p", "Time was over before everything was looked at.", class_="quiet")
        if found.get("cut_short")
        else None,
    )


def funnel(found: Any, names: Collection[str]) -> Markup:
    rows: list[tuple[Child, Child]] = [("in the fleet", found["total"])]
    rows += [(sentence(stage["words"], names), stage["left"]) for stage in found["funnel"]]
    return table("What each constraint leaves over", ("After", "Hosts left"), rows)


def nearest(found: Any, names: Collection[str]) -> Iterator[Markup]:
    if found["nearest"]:
        yield element("h2", "Nearest hosts")
    for place in found["nearest"]:
        rows = [
            (
                "ok" if one["met"] else "short" if one.get("ever") else "never",
                sentence(one["constraint"], names),
                name(one["provider"]) if one.get("provider") else "",
                *(str(one.get(key, "")) for key in ("wanted", "free", "capacity", "short")),
            )
            for one in place["findings"]
        ]
        heads = ("Verdict", "Constraint", "On", "Wanted", "Free", "Capacity", "Short")
        yield element("h3", host_link(place["uuid"], place["name"]))
        yield table("What it lacks", heads, rows)


def helping(found: Any, names: Collection[str]) -> Iterator[Markup]:
    helps = [
        link(address("/why", query=one["query"]), sentence(one["words"], names))
        for one in found["relaxations"]
    ]
    helps += [sentence(one["words"], names) for one in found.get("additions", ())]
    if helps:
        yield element("h2", "What would help")
        yield element("ul", *(element("li", each) for each in helps))


def moving(found: Any, names: Collection[str]) -> Iterator[Markup]:
    plans = found.get("moves")
    if plans is None:
        return
    yield element("h2", "Whom to move")
    if not plans:
        yield element("p", "No set of consumers was found whose leaving would help.")
    for plan in plans:
        rows = [
            (
                link(address(f"/holders/{move['consumer']}"), move["consumer"]),
                ", ".join(f"{class_}:{amount}" for class_, amount in move["resources"].items()),
                host_link(move["from"]["uuid"], move["from"]["name"]),
                host_link(move["to"]["uuid"], move["to"]["name"]) if move["to"] else "(no place)",
            )
            for move in plan["moves"]
        ]
        yield table(sentence(plan["words"], names), ("Consumer", "Holds", "From", "To"), rows)


def host_link(uuid: str | None, named: str | None) -> Markup:
    shown = name(named or uuid or "")
    return shown if uuid is None else link(address(f"/hosts/{quote(uuid, safe='')}"), shown)
