"""HTML made of elements: every text in it is escaped, whoever wrote it; pages are built with it.

Names in the ledger are anybody's: they may hold markup, or characters that turn the direction of
writing around. `name` shows one so that it stays a text of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

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
    return element("bdi", of, class_="name", title=of)


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
