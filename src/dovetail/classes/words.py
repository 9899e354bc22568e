"""Why asks cannot be met on a node, in words."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.classes.asks import Ask
from dovetail.classes.catalogue import Catalogue

SHOWN = 3
"""Holders that are named; of more than these the number is given."""


def shortage(name: str, asked: int, units: int, free: int, holders: Sequence[str]) -> str:
    text = f"class {name}: {asked} asked, {free} of {units} free"
    if not holders:
        return text
    more = len(holders) - SHOWN
    who = ", ".join(holders[:SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"{text}, held by {who}"


def together(asks: Sequence[Ask], catalogue: Catalogue) -> str:
    """Of asks for which there are units enough, class by class."""
    singles = [each for each in asks if catalogue[each.class_name].single_device]
    if len(asks) == 1 and singles:
        return f"class {asks[0].class_name}: no single device has {asks[0].count} free"
    names = ", ".join(dict.fromkeys(each.class_name for each in asks))
    return f"enough of each class is free, but not of all together: {names}"
