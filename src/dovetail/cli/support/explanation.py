"""An explanation laid out for a person to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dovetail.cli.support.output import paint, printable, table

COLOURS = {"fits": "green", "not_now": "yellow", "never": "red"}
INDENT = "  "


def lines(
    answer: dict[str, Any], names: Mapping[str, str], *, one_host: bool = False
) -> Iterator[str]:
    """The explanation, with the names that were asked about in place of their UUIDs."""
    for line in laid_out(answer, one_host=one_host):
        told = line
        for uuid, name in names.items():
            told = told.replace(uuid, name)
        yield told


def laid_out(
    answer: dict[str, Any],
    *,
    one_host: bool = False,
    among: str = "in the fleet",
    ask: str = "dovetail candidates",
) -> Iterator[str]:
    """The sentence first, then how it came to that, then what to do.

    Where one host was asked about, what is said of it goes before everything. `among` says where
    all of them are; with the command `ask`, a changed request is asked anew.
    """
    if one_host:
        yield from judged(answer["nearest"])
        yield ""
    yield paint(printable(answer["summary"]), COLOURS.get(answer["verdict"]), bold=True)
    if answer["funnel"]:
        yield ""
        yield from funnel(answer, among)
    if answer["nearest"] and not one_host:
        yield ""
        yield from nearest(answer["nearest"])
    if answer["relaxations"]:
        yield ""
        yield from relaxations(answer["relaxations"], ask)
        if more := answer.get("more_relaxations"):
            yield f"{INDENT}and {more:,} more that change as little"
    for title, key in (("What to add:", "additions"), ("Whom to move:", "moves")):
        if answer.get(key):
            yield ""
            yield title
            yield from (f"{INDENT}{printable(one['words'])}" for one in answer[key])
    if answer.get("cut_short"):
        yield ""
        yield "Time was over before everything was looked at: there may be more, or smaller ones."


def funnel(answer: dict[str, Any], among: str) -> list[str]:
    rows: list[tuple[int, str]] = [(answer["total"], among)]
    rows += [(step["left"], step["words"]) for step in answer["funnel"]]
    return table([f"{answer['of'].upper()} LEFT", "AFTER"], rows)


def judged(hosts: list[dict[str, Any]]) -> Iterator[str]:
    for host in hosts:
        verdict, colour = ("fits", "green") if host["fits"] else ("does not fit", "red")
        yield paint(f"{printable(host['name'])} {verdict}.", colour, bold=True)
        yield from findings(host)


def nearest(hosts: list[dict[str, Any]]) -> Iterator[str]:
    yield "Nearest:"
    for host in hosts:
        yield f"{INDENT}{paint(printable(host['name']), bold=True)}"
        yield from (f"{INDENT}{line}" for line in findings(host))


def findings(host: dict[str, Any]) -> Iterator[str]:
    for finding in host["findings"]:
        yield f"{INDENT}{mark(finding)} {printable(finding['words'])}"


def mark(finding: dict[str, Any]) -> str:
    """What can never be met here is told apart from what is only taken now."""
    if finding["met"]:
        return paint("ok   ", "green")
    return paint("short", "yellow") if finding["ever"] else paint("never", "red")


def relaxations(found: list[dict[str, Any]], ask: str) -> Iterator[str]:
    """Each with its request: as a command, or as it is."""
    yield "What would help:"
    for change in found:
        yield f"{INDENT}{printable(change['words'])}"
        query = printable(change["query"])
        if query:
            asked = f"{ask} '{query}'" if ask else query
            yield f"{INDENT * 2}{asked}"
