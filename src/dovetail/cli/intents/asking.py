"""`dovetail intents plan`, `explain` and `status`: what a group would get, why not, what it has."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import click

from dovetail.cli.support import exits
from dovetail.cli.support.client import ServerClient, segment, talks_to_server
from dovetail.cli.support.output import count_text, output_option, paint, printable, show, table

Json = Mapping[str, Any]
SHORT_PARTS, LONG_PARTS = 4, 7
MOST_NAMED = 8
"""Clusters of a list, on a line for people; `-o json` has all."""


class GroupParameter(click.ParamType[str]):
    """A deployment intent group, by its path or by its names alone."""

    name = "group"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        parts = [part for part in str(value).strip("/").removeprefix("v2/").split("/") if part]
        if len(parts) == SHORT_PARTS:
            project, app, version, group = map(segment, parts)
            return (
                f"projects/{project}/composite-apps/{app}/{version}"
                f"/deployment-intent-groups/{group}"
            )
        if len(parts) != LONG_PARTS or parts[0] != "projects":
            self.fail("should read PROJECT/COMPOSITE-APP/VERSION/GROUP", param, ctx)
        return "/".join(map(segment, parts))


group_argument = click.argument("group", type=GroupParameter(), metavar="GROUP")


@click.command()
@group_argument
@click.option("--diff/--no-diff", default=True, help="Show how objects are edited.")
@output_option
@talks_to_server()
def plan(*, server: ServerClient, group: str, diff: bool, form: str) -> None:
    """Show the candidates of GROUP, the pick, and its objects as they would be edited.

    GROUP is PROJECT/COMPOSITE-APP/VERSION/GROUP. Nothing is claimed and nothing sent. Exits with 1
    if no choice of clusters serves it.
    """
    found = server.get(f"/v2/{group}/plan")
    show(form, found, lambda: plan_lines(found, with_diff=diff))
    if not found["feasible"]:
        sys.exit(exits.NO)


@click.command()
@group_argument
@click.argument("app")
@click.option("--cluster", metavar="PROVIDER+CLUSTER", help="Of this cluster only.")
@output_option
@talks_to_server()
def explain(*, server: ServerClient, group: str, app: str, cluster: str | None, form: str) -> None:
    """Say of each cluster whether it can take APP of GROUP; if not, what is short and what helps.

    Exits with 1 if no cluster can.
    """
    query = urlencode({"app": app, **({"cluster": cluster} if cluster else {})})
    found = server.get(f"/v2/{group}/explain?{query}")
    show(form, found, lambda: explanation_lines(found))
    if not any(each.get("fits") for each in found["clusters"]):
        sys.exit(exits.NO)


@click.command()
@group_argument
@output_option
@talks_to_server()
def status(*, server: ServerClient, group: str, form: str) -> None:
    """Show what became of GROUP: its objects, its pods, and the nodes that are charged for them."""
    found = server.get(f"/v2/{group}/status")
    show(form, found, lambda: status_lines(found))


# -- plans ---------------------------------------------------------------------------------------


def plan_lines(found: Json, *, with_diff: bool) -> Iterator[str]:
    yield from fleet_lines(found["fleet"])
    for each in found["failures"]:
        yield f"Controller {each['controller']}: {printable(each['words'])}"
    yield ""
    yield from candidate_lines(found["candidates"])
    yield ""
    if not found["feasible"]:
        yield paint(f"Nothing is picked: {printable(found['why'])}", bold=True)
        yield from reason_lines(found["refused"])
        return
    yield from pick_lines(found["pick"])
    yield ""
    for each in found["placements"]:
        yield from placement_lines(each)
    yield from reason_lines(found["refused"])
    if with_diff:
        for each in found["placements"]:
            if each["diff"]:
                yield ""
                yield from map(coloured, each["diff"].rstrip("\n").split("\n"))


def fleet_lines(fleet: Json) -> Iterator[str]:
    clusters = count_text(fleet["clusters"], "cluster")
    yield f"{clusters}, the oldest as told {fleet['oldestSeconds']} s ago."
    for each in fleet["notReady"]:
        yield f"{printable(each['cluster'])} is {each['state']}: {printable(each['why'])}"


def candidate_lines(candidates: Json) -> Iterator[str]:
    for number, each in enumerate(candidates["candidates"], 1):
        for app, clusters in each.items():
            yield f"P{number}  {printable(app)}: {clusters_text(clusters)}"
    more = candidates.get("more")
    if more:
        # Of too many to be counted exactly, it is text.
        told = count_text(more, "more candidate") if isinstance(more, int) else f"{more} more"
        yield f"... and {told}"


def clusters_text(clusters: Json) -> str:
    if "parts" in clusters:
        return ", and ".join(map(clusters_text, clusters["parts"]))
    form = "allow" if "allow" in clusters else "deny"
    names = clusters[form]
    shown = ", ".join(map(printable, names[:MOST_NAMED]))
    more = f", and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{clusters['count']} of {form} [{shown}{more}]"


def pick_lines(pick: Json) -> Iterator[str]:
    proof = "" if pick["isProven"] else ", perhaps not the best"
    yield paint(f"Picked, with a score of {pick['score']}{proof}:", bold=True)
    rows = [
        (app, each["cluster"], each["score"])
        for app, clusters in pick["apps"].items()
        for each in clusters
    ]
    yield from table(("APP", "CLUSTER", "SCORE"), rows)


def placement_lines(placed: Json) -> Iterator[str]:
    where = f"{printable(placed['app'])} on {printable(placed['cluster'])}"
    for each in placed["workloads"]:
        nodes = ", ".join(f"{name} x{count}" for name, count in each["nodes"].items())
        yield f"{where}: {each['kind']} {printable(each['name'])} on {nodes}, {each['qosClass']}"
        if "pinned" in each:
            yield f"  pinned there: {printable(each['pinned']['why'])}"
    for each in placed["options"]:
        word = "with" if each["granted"] else "without"
        yield f"  {word} {printable(each['requirement'])} (weight {each['weight']})"
    for name in placed.get("mayStrand", ()):
        yield f"  {printable(name)} may find its room taken: that it cannot was not proved"


def reason_lines(refused: Iterable[Json]) -> Iterator[str]:
    rows = [reason_row(each) for each in refused if "more" not in each]
    more = sum(each["more"] for each in refused if "more" in each)
    if rows:
        yield ""
        yield from table(("APP", "CLUSTER", "BY", "WHY NOT"), rows)
    if more:
        yield f"... and {more:,} more"


def reason_row(reason: Json) -> tuple[str, str, str, str]:
    apps = reason.get("app") or "+".join(reason.get("apps", ()))
    return (apps, reason.get("cluster", ""), reason.get("controller", ""), reason["words"])


def coloured(line: str) -> str:
    colour = {"+": "green", "-": "red"}.get(line[:1])
    return paint(printable(line), colour)


# -- explanations --------------------------------------------------------------------------------


def explanation_lines(found: Json) -> Iterator[str]:
    yield from fleet_lines(found["fleet"])
    yield ""
    app = printable(found["app"])
    for each in found["clusters"]:
        if "more" in each:
            yield f"... and {count_text(each['more'], 'more cluster')}"
            continue
        yield from cluster_lines(app, each, is_picked=each["cluster"] in found["picked"])


def cluster_lines(app: str, cluster: Json, *, is_picked: bool) -> Iterator[str]:
    name = printable(cluster["cluster"])
    if cluster["fits"]:
        picked = ", and is picked" if is_picked else ""
        yield paint(f"{name} takes {app}, score {cluster['score']}{picked}.", "green")
    else:
        yield paint(f"{name} does not take {app}.", "red")
    for each in cluster["excludedBy"]:
        yield f"  {each['controller']}: {printable(each['words'])}"
    for words in cluster.get("contended", ()):
        yield f"  contended: {printable(words)}"
    for each in cluster.get("fixes", ()):
        yield f"  would fit with {printable(each['words'])}"


# -- status --------------------------------------------------------------------------------------


def status_lines(found: Json) -> Iterator[str]:
    yield paint(f"{printable(found['name'])}: {found['status']}, {found['readyStatus']}", bold=True)
    if "reason" in found:
        yield printable(found["reason"])
    for app in found.get("apps", ()):
        for each in app["clusters"]:
            yield ""
            yield from deployed_lines(printable(app["name"]), each)


def deployed_lines(app: str, cluster: Json) -> Iterator[str]:
    name = f"{printable(cluster['clusterProvider'])}+{printable(cluster['cluster'])}"
    why = f" ({printable(cluster['why'])})" if cluster.get("why") else ""
    age = f", told {cluster['ageSeconds']} s ago" if "ageSeconds" in cluster else ""
    yield f"{app} on {name}, score {cluster['score']}: {cluster['connectivity']}{why}{age}"
    rows = [
        (each["GVK"]["Kind"], each["name"], each["deployedStatus"], each["readyStatus"])
        for each in cluster["resources"]
    ]
    if rows:
        yield from table(("KIND", "NAME", "SENT", "READY"), rows)
    pods = [
        (each["name"], each["phase"], each["node"], "yes" if each["charged"] else "no")
        for each in cluster["pods"]
    ]
    if pods:
        yield from table(("POD", "PHASE", "NODE", "CHARGED"), pods)
