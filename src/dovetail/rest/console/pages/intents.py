"""Hardware intents as pages: the groups there are, and of one where it goes, why, and what is
edited."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from dovetail.rest.console import me
from dovetail.rest.console.markup import Child, Markup, element, join, link, name, sentence, table
from dovetail.rest.console.pages.page import address, asked, names_in, page, problem
from dovetail.rest.server.errors import HttpError
from dovetail.rest.server.http import Call, Reply

PLACE = ("project", "app", "version", "group")


async def show_all(call: Call) -> Reply:
    """GET /console/intents; readers of a project are shown those of theirs."""
    project = call.query.get("project_id")
    if project is None and not me.rights(call.identity, call.backend)["intents_of_all"]:
        project = call.identity.project
    found = await asked(call, "/dovetail/v1/intents", project_id=project)
    rows = [
        (
            link(
                address("/intents/" + "/".join(quote(one[key], safe="") for key in PLACE)),
                name(one["group"]),
            ),
            name(one["project"]),
            name(f"{one['app']} {one['version']}"),
            one["state"] or "not approved",
        )
        for one in found["groups"]
    ]
    heads = ("Group", "Project", "Application", "State")
    listed = table("Groups", heads, rows) if rows else element("p", "There are no groups.")
    of = None if project is None else element("p", "Of project ", name(project), ".")
    return await page(call, "Intents", "/intents", element("h1", "Intents"), of, listed)


async def show(call: Call) -> Reply:
    """GET /console/intents/{project}/{app}/{version}/{group}."""
    project, app, version, group = (quote(call.params[key], safe="") for key in PLACE)
    place = (
        f"/v2/projects/{project}/composite-apps/{app}/{version}/deployment-intent-groups/{group}"
    )
    content: tuple[Child, ...]
    try:
        content = tuple(planned(await asked(call, f"{place}/plan")))
    except HttpError as error:
        if error.status == 404:
            raise
        content = (problem(error),)
    title = element("h1", name(call.params["group"]))
    return await page(call, call.params["group"], "/intents", title, *content)


def planned(plan: Any) -> Iterator[Markup]:
    why = sentence(str(plan.get("why", "")), names_in(plan))
    yield element("p", "It has a place." if plan["feasible"] else why)
    for app, picked in plan.get("pick", {}).get("apps", {}).items():
        rows = [(name(one["cluster"]), str(one["score"]), str(one["rank"])) for one in picked]
        caption = join(("Where ", name(app), " goes"))
        yield table(caption, ("Cluster", "Score", "Rank"), rows)
    yield from reasons(plan)
    for one in plan.get("placements", ()):
        yield element("h2", "What is edited of ", name(one["app"]), " on ", name(one["cluster"]))
        rows = [(name(edit["object"]), edit["path"], edit["why"]) for edit in one["edits"]]
        if rows:
            yield table("Edits", ("Object", "Field", "Why"), rows)
        yield element("pre", diff_text(one["diff"]))


def reasons(plan: Any) -> Iterator[Markup]:
    rows = [
        (
            name(one.get("cluster", "")),
            name(one.get("app") or ", ".join(one.get("apps", ()))),
            one.get("controller", ""),
            sentence(one["words"], (one.get("cluster"), one.get("app"), *one.get("apps", ()))),
        )
        for one in plan["refused"]
        if "words" in one
    ]
    if rows:
        yield table("Why not elsewhere", ("Cluster", "App", "Controller", "Why"), rows)


def diff_text(diff: Any) -> str:
    return diff if isinstance(diff, str) else "\n".join(map(str, diff))
