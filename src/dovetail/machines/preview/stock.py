"""Stock of a specification in preview: where it would be held, proved, or why it would be short.

`dry_run` asks, with nodes marked as they will be. What is held stays where it is if the rest fits
beside it; else all of it is placed anew, as the operator does it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from dovetail.machines.preview.pool_parts import (
    UNSERVED_WORDS,
    PoolPart,
    lacking_words,
    pool_parts,
    table_of,
    whole_stock,
)
from dovetail.machines.selling.standing import MachineStanding
from dovetail.podfit.packing import Packed, PodsToPack, Undecided, Unpackable, most, pack
from dovetail.podfit.packing.answers import Assignment

FITS, SHORT, UNDECIDED, UNSERVED = "fits", "short", "undecided", "unserved"


class StockPreview(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    wanted: int
    """Sleepers that there should be."""
    verdict: str
    before: dict[str, int]
    """Sleepers by node, now."""
    after: dict[str, int]
    """And then, as far as they fit."""
    node: str | None = None
    """The blocking one, if not all fit."""
    words: str = ""


def stock_previews(standing: MachineStanding) -> tuple[StockPreview, ...]:
    """By type, in the order of the specification."""
    found = {each.type: each for part in pool_parts(standing) for each in _of_part(standing, part)}
    return tuple(found[each.name] for each in standing.snapshot.spec.machine_types)


def _of_part(standing: MachineStanding, part: PoolPart) -> Iterator[StockPreview]:
    for book in part.books:
        tops = part.tops
        others = (each.name for each in book.family.shapes if each.name not in tops)
        rest: dict[str, Counter[str]] = {name: Counter() for name in others}
        for (name, node), count in book.parts().items():
            rest[name][node] += count
        for name, nodes in rest.items():
            is_unserved = name in standing.survey.unserved
            yield StockPreview(
                type=name,
                wanted=nodes.total(),
                verdict=UNSERVED if is_unserved else FITS,
                before=_there(standing, name),
                after=dict(nodes),
                words=UNSERVED_WORDS if is_unserved else "",
            )
    yield from _whole_units(standing, part)


def _there(standing: MachineStanding, name: str) -> dict[str, int]:
    return dict(sorted(Counter(each.node for each in standing.sleepers.of_type(name)).items()))


def _whole_units(standing: MachineStanding, part: PoolPart) -> Iterator[StockPreview]:
    stock = whole_stock(standing, part)
    before = [_there(standing, name) for name in part.tops]
    missing = [
        PodsToPack(each.request, max(each.count - sum(there.values()), 0))
        for each, there in zip(stock, before, strict=True)
    ]
    answer = pack(table_of(standing, part, moving=False), missing)
    if isinstance(answer, Packed):
        after: Assignment = tuple(
            _together(there, more) for there, more in zip(before, answer.assignment, strict=True)
        )
        yield from _previews(standing, part, before, after)
        return
    table = table_of(standing, part, moving=True)
    answer = pack(table, stock)
    match answer:
        case Packed(assignment=assignment):
            yield from _previews(standing, part, before, assignment)
        case Undecided():
            yield from _previews(standing, part, before, tuple(before), undecided=True)
        case Unpackable():
            yield from _as_many_as_fit(standing, part, before)


def _together(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted((Counter(one) + Counter(other)).items()))


def _as_many_as_fit(
    standing: MachineStanding, part: PoolPart, before: list[dict[str, int]]
) -> Iterator[StockPreview]:
    """Type after type, in the order of the part: so many as there is room for."""
    table = table_of(standing, part, moving=True)
    fitting: list[PodsToPack] = []
    blocking: dict[int, tuple[str | None, str]] = {}
    for at, each in enumerate(whole_stock(standing, part)):
        room = most(table, each.request, beside=fitting)
        count = min(each.count, room.at_least)
        if count < each.count:
            answer = pack(table, [*fitting, PodsToPack(each.request, count + 1)])
            if isinstance(answer, Unpackable):
                blocking[at] = (answer.node, lacking_words(answer))
        fitting.append(PodsToPack(each.request, count))
    answer = pack(table, fitting)
    after = answer.assignment if isinstance(answer, Packed) else tuple(before)
    yield from _previews(standing, part, before, after, blocking=blocking)


def _previews(
    standing: MachineStanding,
    part: PoolPart,
    before: list[dict[str, int]],
    after: Assignment,
    *,
    undecided: bool = False,
    blocking: Mapping[int, tuple[str | None, str]] | None = None,
) -> Iterator[StockPreview]:
    stock = whole_stock(standing, part)
    for at, name in enumerate(part.tops):
        node, words = (blocking or {}).get(at, (None, ""))
        wanted, verdict = stock[at].count, FITS
        if undecided:
            verdict = UNDECIDED
        elif sum(after[at].values()) < wanted:
            verdict = SHORT
        yield StockPreview(
            type=name,
            wanted=wanted,
            verdict=verdict,
            before=before[at],
            after=dict(sorted(after[at].items())),
            node=node,
            words=words,
        )
