"""Slices of long documents, which are valid if and only if the document is; `Schema` checks those.

A JSON Schema is checked in C in one go, which takes a second for eight megabytes. So a long
document is taken apart: every slice is the document with its long lists and objects cut down to a
few of their elements, and every element is in one slice. That decides the same where a schema says
of long lists and objects only what each element has to be (and that there is at least one), as ours
do; that elements differ is checked here, over all of them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import chain, islice
from typing import Any

MOST_VALUES = 2_000
"""In an element that is not cut, and about in a slice of them."""
FEW = 16
"""Members of objects that have to have some of them."""
DEEPEST = 16
"""Levels at which documents are cut: no schema has as many."""

Slices = Generator[Any, None, None]


class CannotSlice(Exception):
    """A document that is long where none may be."""


def slices(document: Any, depth: int = 0) -> Slices:
    """Raises CannotSlice for what is long so deep down that it cannot be valid."""
    if not is_long(document):
        yield document
    elif depth >= DEEPEST:
        raise CannotSlice
    elif isinstance(document, dict):
        # Objects that need certain members have few: those are never parted.
        parts = batches(document.items()) if len(document) > FEW else [[*document.items()]]
        for some in parts:
            yield from of_object(dict(some), depth)
    else:
        for some in batches(enumerate(document)):
            for each in of_object(dict(some), depth):
                yield [*each.values()]


def of_object(members: dict[Any, Any], depth: int) -> Slices:
    """Of what is long for some of its members: those are taken in slices, one after another, and
    the others cut down meanwhile."""
    long = [key for key, value in members.items() if is_long(value)]
    yield members | {key: cut_down(members[key]) for key in long}
    if long:
        rest = {key: cut_down(value) for key, value in members.items()}
        for key in long:
            for part in slices(members[key], depth + 1):
                yield rest | {key: part}


def cut_down(value: Any, depth: int = 0) -> Any:
    """The same with one element where there are many."""
    if depth >= DEEPEST:
        return value
    if isinstance(value, dict):
        kept = value.items() if len(value) <= FEW else islice(value.items(), 1)
        return {key: cut_down(each, depth + 1) for key, each in kept}
    if isinstance(value, list):
        return [cut_down(each, depth + 1) for each in value[:1]]
    return value


def batches(elements: Iterable[tuple[Any, Any]]) -> Iterator[list[tuple[Any, Any]]]:
    """A few at a time: so many that they have about MOST_VALUES values, or one that is long."""
    some: list[tuple[Any, Any]] = []
    values = 0
    for key, element in elements:
        some.append((key, element))
        values += 1 + size_of(element)
        if values > MOST_VALUES:
            yield some
            some, values = [], 0
    if some:
        yield some


def is_long(document: Any) -> bool:
    return size_of(document) > MOST_VALUES


def size_of(document: Any) -> int:
    """The values in it, counted up to MOST_VALUES and one."""
    if not isinstance(document, dict | list):
        return 1
    size, level = 1, [document]
    while level and size <= MOST_VALUES:
        size += sum(map(len, level))
        if size > MOST_VALUES:
            break
        below = chain.from_iterable(
            each.values() if isinstance(each, dict) else each for each in level
        )
        level = [each for each in below if isinstance(each, dict | list)]
    return size


def repeats(elements: list[Any]) -> bool:
    """Whether a text is in it twice."""
    texts = [each for each in elements if isinstance(each, str)]
    return len(set(texts)) < len(texts)
