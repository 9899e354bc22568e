"""Why asks cannot be met on a node, in words."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.devices.allocation.catalogue import Catalogue
from dovetail.devices.allocation.request import DeviceRequest

SHOWN = 3
"""Holders that are named; of more than these the number is given."""


def shortage(name: str, asked: int, units: int, free: int, holders: Sequence[str]) -> str:
    text = f"class {name}: {asked} asked, {free} of {units} free"
    if not holders:
        return text
    more = len(holders) - SHOWN
    who = ", ".join(holders[:SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"{text}, held by {who}"


def together(asks: Sequence[DeviceRequest], catalogue: Catalogue) -> str:
    """Of asks for which there are units enough, class by class."""
    singles = [each for each in asks if catalogue[each.class_name].single_device]
    if len(asks) == 1 and singles:
        return f"class {asks[0].class_name}: no single device has {asks[0].count} free"
    return f"enough of each class is free, but not of all together: {_names(asks)}"


def strictly(asks: Sequence[DeviceRequest]) -> str:
    """Of asks that another strategy would meet."""
    return (
        "strictFirstFit takes class after class and never exchanges devices: enough is free for"
        f" {_names(asks)}, but what goes to the first is what a later one needs"
    )


def given_up(asks: Sequence[DeviceRequest]) -> str:
    """Of asks that nobody knows how to meet, nor that they cannot be met."""
    return (
        f"enough of each class is free, but no devices were found for all together: {_names(asks)};"
        " the search was given up, since there are too many ways to try"
    )


def _names(asks: Sequence[DeviceRequest]) -> str:
    return ", ".join(dict.fromkeys(each.class_name for each in asks))
