"""Writer of candidate queries: from a request back to its query string, for explanations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urlencode

from dovetail.core.constraints import same_subtree
from dovetail.core.request import Group, Request
from dovetail.core.selectors import condition_text

Pair = tuple[str, str]


def query_text(request: Request) -> str:
    return urlencode(list(pairs(request)), safe=":,!")


def pairs(request: Request) -> Iterator[Pair]:
    for group in request.groups:
        yield from of_group(group)
    yield from of_isolation(request)
    for affinity in request.affinities:
        yield "same_subtree", same_subtree(affinity).text
    root = [*(name for names in request.root_required for name in names)]
    root += [f"!{name}" for name in sorted(request.root_forbidden)]
    if root:
        yield "root_required", ",".join(root)
    yield from members("root_member_of", request.root_member_of, request.root_not_member_of)
    if request.limit is not None:
        yield "limit", str(request.limit)


def of_group(group: Group) -> Iterator[Pair]:
    if group.resources:
        amounts = (f"{name}:{amount}" for name, amount in group.resources.items())
        yield f"resources{group.suffix}", ",".join(amounts)
    single = [name for names in group.required if len(names) == 1 for name in names]
    single += [f"!{name}" for name in sorted(group.forbidden)]
    if single:
        yield f"required{group.suffix}", ",".join(single)
    for names in group.required:
        if len(names) > 1:
            yield f"required{group.suffix}", f"in:{','.join(sorted(names))}"
    yield from members(f"member_of{group.suffix}", group.member_of, group.not_member_of)
    if group.selectors:
        conditions = (
            each for selector in group.selectors for branch in selector for each in branch
        )
        yield f"attributes{group.suffix}", condition_text.write(conditions)
    for named in group.classes:
        yield f"class{group.suffix}", named.name
    if group.in_tree is not None:
        yield f"in_tree{group.suffix}", group.in_tree


def of_isolation(request: Request) -> Iterator[Pair]:
    suffixed = frozenset(group.suffix for group in request.groups if group.suffix)
    if request.isolated and request.isolated == suffixed:
        yield "group_policy", "isolate"
    elif request.isolated:
        yield "isolate", ",".join(sorted(request.isolated))


def members(key: str, wanted: Iterable[frozenset[str]], unwanted: frozenset[str]) -> Iterator[Pair]:
    for names in wanted:
        text = ",".join(sorted(names))
        yield key, f"in:{text}" if len(names) > 1 else text
    if unwanted:
        text = ",".join(sorted(unwanted))
        yield key, f"!in:{text}" if len(unwanted) > 1 else f"!{text}"
