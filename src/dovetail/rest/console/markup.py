"""HTML made of elements: every text in it is escaped, whoever wrote it; pages are built with it.

Names in the ledger are anybody's: they may hold markup, or characters that turn the direction of
writing around. `name` shows one so that it stays a text of its own, `sentence` a text that has some
in it.

Browsers hand an element that isolates to the rules of Unicode (UAX 9) as an isolate and its end. A
name with an isolate that it does not end would take that end for its own, and one that ends more
than it begins would end ours; so ends and beginnings are added around it until they match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

FIRST_STRONG_ISOLATE, POP_ISOLATE = "\u2068", "\u2069"
ISOLATES = ("\u2066", "\u2067", FIRST_STRONG_ISOLATE)
VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = Markup | str | int | None
Attribute = str | int | bool | None


def text(content: str) -> Markup:
    return Markup(escape(content, quote=False))


def join(children: Iterable[Child]) -> Markup:
    return Markup(
        "".join(
            child if isinstance(child, Markup) else text(str(child))
            for child in children
            if child is not None
        )
    )


def element(tag: str, *children: Child, **attributes: Attribute) -> Markup:
    """Names of attributes are written with underscores: `class_`, `aria_label`."""
    head = tag + "".join(
        f" {key.rstrip('_').replace('_', '-')}{attribute_value(value)}"
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if tag in VOID:
        return Markup(f"<{head}>")
    return Markup(f"<{head}>{join(children)}</{tag}>")


def attribute_value(value: Attribute) -> str:
    return "" if value is True else f'="{escape(str(value))}"'


def name(of: str) -> Markup:
    """A name as it stands in the ledger, isolated from the writing direction around it."""
    return balanced(of, element("bdi", of, class_="name", title=of))


def isolated(words: str) -> Markup:
    """What somebody else said, isolated likewise."""
    return balanced(words, element("bdi", words))


def isolated_text(of: str) -> str:
    """A name where there can be no elements, such as the title of a page."""
    if of.isascii():
        return of
    before, after = missing_isolates(of)
    return f"{before}{FIRST_STRONG_ISOLATE}{of}{POP_ISOLATE}{after}"


def balanced(of: str, shown: Markup) -> Markup:
    before, after = missing_isolates(of)
    return Markup(f"{before}{shown}{after}")


def missing_isolates(of: str) -> tuple[str, str]:
    """What has to stand before and after a text for its isolates to begin and end in it."""
    begun = ended = 0
    for letter in of:
        if letter in ISOLATES:
            begun += 1
        elif letter == POP_ISOLATE and begun:
            begun -= 1
        elif letter == POP_ISOLATE:
            ended += 1
    return FIRST_STRONG_ISOLATE * ended, POP_ISOLATE * begun


def sentence(words: str, names: Iterable[str | None]) -> Markup:
    """A sentence that names some things: each name in it is isolated. Names of plain letters turn
    nothing around and stay as they are."""
    turning = {each for each in names if each and not each.isascii()}
    if not turning:
        return text(words)
    # The longest first: one may begin with another.
    pattern = "|".join(map(re.escape, sorted(turning, key=len, reverse=True)))
    parts = re.split(f"({pattern})", words)
    return join(isolated(part) if at % 2 else part for at, part in enumerate(parts))


def link(to: str, *children: Child, **attributes: Attribute) -> Markup:
    return element("a", *children, href=to, **attributes)


def table(caption: Child, heads: Iterable[Child], rows: Iterable[Iterable[Child]]) -> Markup:
    """The first cell of each row is its head."""
    return table_of(caption, heads, map(table_row, rows))


def table_of(caption: Child, heads: Iterable[Child], rows: Iterable[Markup]) -> Markup:
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *(element("th", head, scope="col") for head in heads))),
        element("tbody", *rows),
    )


def table_row(cells: Iterable[Child]) -> Markup:
    first, *others = cells
    return element(
        "tr", element("th", first, scope="row"), *(element("td", each) for each in others)
    )


def definitions(pairs: Iterable[tuple[str, Child]]) -> Markup:
    parts = [join((element("dt", term), element("dd", value))) for term, value in pairs]
    return element("dl", *parts)
