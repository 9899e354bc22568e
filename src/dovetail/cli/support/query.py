"""Query strings of allocation_candidates, built from the options that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

import click

from dovetail.cli.support.client import ServerClient
from dovetail.cli.support.names import is_uuid, uuid_of

Pairs = list[tuple[str, str]]
Command = TypeVar("Command", bound=Callable[..., Any])
SUFFIX = re.compile("_[a-zA-Z0-9_-]{1,63}")


class PreparedQuery(NamedTuple):
    text: str
    """The query as the server takes it: with UUIDs where people may write names."""
    names: Mapping[str, str]
    """By UUID, the names that were written; without those that a query has to quote."""


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
    click.option("--in-tree", metavar="PROVIDER", help="Only on the host of this provider."),
    click.option("--limit", type=click.IntRange(min=1), help="At most so many candidates."),
    click.option("--rank", metavar="POLICY", help="Best first by this policy, as best-fit."),
    click.option("--scores", is_flag=True, help="Show the scores that made the order."),
)


def query_pairs(
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
    pairs = parsed_pairs(query) if query else []
    if resources:
        pairs.append(("resources", ",".join(resources)))
    if traits:
        pairs.append(("required", ",".join(traits)))
    for group in groups:
        pairs += group_pairs(group)
    pairs += [("same_subtree", ",".join(map(suffix, text.split(",")))) for text in subtrees]
    options = (
        (f"in_tree{decisive_group(pairs)}", in_tree),
        ("limit", limit),
        ("rank", rank),
        ("scores", int(scores)),
    )
    pairs += [(name, str(value)) for name, value in options if value]
    if not pairs:
        raise click.UsageError("say what to look for: a QUERY as 'resources=VCPU:8', or -r VCPU:8")
    return list(merged_pairs(pairs))


def parsed_pairs(query: str) -> Pairs:
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
    full = bare if bare.startswith("_") else f"_{bare}"
    if SUFFIX.fullmatch(full) is None:
        raise click.UsageError(f"{bare!r} is no name of a group: use letters, digits, - and _")
    return excluded + full


def decisive_group(pairs: Pairs) -> str:
    """The suffix of the group whose provider decides on the host: where it is, all others are."""
    asking = [key.removeprefix("resources") for key, _ in pairs if key.startswith("resources")]
    return "" if "" in asking or not asking else asking[0]


def merged_pairs(pairs: Pairs) -> Iterator[tuple[str, str]]:
    """What QUERY and options say of one thing, as one; a server would hear only one of them."""
    values: dict[str, list[str]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    for key, given in values.items():
        if key.startswith("resources"):
            yield key, amounts(key, given)
        elif len(given) > 1 and (key in {"limit", "rank", "scores"} or key.startswith("in_tree")):
            raise click.UsageError(f"{key} is given twice: {' and '.join(given)}")
        else:
            yield from ((key, value) for value in given)


def amounts(key: str, given: list[str]) -> str:
    items = ",".join(given).split(",")
    classes = [item.partition(":")[0] for item in items]
    twice = next((name for name in classes if classes.count(name) > 1), None)
    if twice is not None:
        raise click.UsageError(f"{key} has {twice} twice: say how much in all")
    return ",".join(items)


def prepare(server: ServerClient, **options: Any) -> PreparedQuery:
    """What the options of `query_options` ask."""
    pairs: Pairs = []
    names: dict[str, str] = {}
    for key, value in query_pairs(**options):
        if key.startswith("in_tree") and not is_uuid(value):
            uuid = uuid_of(server, value)
            pairs.append((key, uuid))
            if quote(value) == value:
                names[uuid] = value
        else:
            pairs.append((key, value))
    return PreparedQuery(urlencode(pairs, safe=":,!"), names)
