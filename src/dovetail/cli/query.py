"""From the options of a command to a query in the language of allocation_candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode

import click

from dovetail.cli.client import Server
from dovetail.cli.names import is_uuid, uuid_of

Pairs = list[tuple[str, str]]
Command = TypeVar("Command", bound=Callable[..., Any])


def query_options(command: Command) -> Command:
    """The query itself, or options that build one."""
    decorated: Any = command
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


OPTIONS = (
    click.argument("query", required=False),
    click.option(
        "-r",
        "--resource",
        "resources",
        multiple=True,
        metavar="CLASS:AMOUNT",
        help="Wanted of the host, wherever it has it; may be repeated.",
    ),
    click.option(
        "--trait",
        "traits",
        multiple=True,
        metavar="[!]TRAIT",
        help="Required of the providers of -r, or with ! forbidden; may be repeated.",
    ),
    click.option(
        "-g",
        "--group",
        "groups",
        multiple=True,
        metavar="NAME=ITEM,...",
        help="Wanted of one provider: items are CLASS:AMOUNT, TRAIT or !TRAIT.",
    ),
    click.option(
        "--same-subtree",
        "subtrees",
        multiple=True,
        metavar="NAME,...",
        help="Groups that have to be under one provider, as a NUMA node.",
    ),
    click.option("--in-tree", metavar="PROVIDER", help="Only this host."),
    click.option("--limit", type=click.IntRange(min=1), help="At most so many candidates."),
    click.option("--rank", metavar="POLICY", help="Best first by this policy, as best-fit."),
    click.option("--scores", is_flag=True, help="Show the scores that made the order."),
)


def built(
    *,
    query: str | None,
    resources: Sequence[str],
    traits: Sequence[str],
    groups: Sequence[str],
    subtrees: Sequence[str],
    in_tree: str | None,
    limit: int | None,
    rank: str | None,
    scores: bool,
) -> Pairs:
    """One query of what was given, the query first."""
    pairs = parsed(query) if query else []
    if resources:
        pairs.append(("resources", ",".join(resources)))
    if traits:
        pairs.append(("required", ",".join(traits)))
    for group in groups:
        pairs += group_pairs(group)
    pairs += [("same_subtree", ",".join(map(suffix, text.split(",")))) for text in subtrees]
    options = (("in_tree", in_tree), ("limit", limit), ("rank", rank), ("scores", scores or None))
    pairs += [
        (name, str(int(value) if value is True else value)) for name, value in options if value
    ]
    if not pairs:
        raise click.UsageError("say what to look for: a QUERY as 'resources=VCPU:8', or -r VCPU:8")
    return pairs


def parsed(query: str) -> Pairs:
    """Of a query string, or of an address that ends in one."""
    text = query.rpartition("?")[2]
    try:
        return parse_qsl(text, keep_blank_values=True, strict_parsing=True)
    except ValueError as error:
        raise click.UsageError(
            f"{query!r} is no query: it should read as 'resources=VCPU:8&limit=5' "
            "(quotes keep the shell from cutting it at the &)"
        ) from error


def group_pairs(text: str) -> Pairs:
    name, equals, items = text.partition("=")
    if not name or not equals or not items:
        raise click.UsageError(f"--group {text}: should read as ACC=FPGA:1,CUSTOM_TRAIT")
    resources = [item for item in items.split(",") if ":" in item]
    traits = [item for item in items.split(",") if ":" not in item]
    pairs = [("resources" + suffix(name), ",".join(resources))] if resources else []
    return pairs + ([("required" + suffix(name), ",".join(traits))] if traits else [])


def suffix(name: str) -> str:
    """Groups are known by a suffix of the keys that speak of them; `!` stays in front."""
    excluded, bare = ("!", name[1:]) if name.startswith("!") else ("", name)
    return excluded + (bare if bare.startswith("_") else f"_{bare}")


def encoded(server: Server, pairs: Pairs) -> str:
    """The query as the server takes it: with UUIDs where people may write names."""
    known = [
        (key, uuid_of(server, value) if key.startswith("in_tree") and not is_uuid(value) else value)
        for key, value in pairs
    ]
    return urlencode(known, safe=":,!")
