"""Texts of the device inventory: why requests for devices cannot be met on a node."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.core.explanation_text import listed
from dovetail.devices.allocation.class_columns import ClassColumns
from dovetail.devices.allocation.request import DeviceRequest

MOST_HOLDERS_NAMED = 3
"""Holders that are named; of more than these the number is given."""


def shortage(name: str, count: int, units: int, free: int, holders: Sequence[str]) -> str:
    text = f"class {name}: {count} asked, {free} of {units} free"
    if not holders:
        return text
    return f"{text}, held by {listed(holders, MOST_HOLDERS_NAMED, ', ', ' and ')}"


def not_together(requests: Sequence[DeviceRequest], classes: ClassColumns) -> str:
    """Of requests for which there are units enough, class by class."""
    singles = [each for each in requests if classes[each.class_name].single_device]
    if len(requests) == 1 and singles:
        return f"class {requests[0].class_name}: no single device has {requests[0].count} free"
    return f"enough of each class is free, but not of all together: {_names(requests)}"


def strict_order(requests: Sequence[DeviceRequest]) -> str:
    """Of requests that another strategy would meet."""
    return (
        "strictFirstFit takes class after class and never exchanges devices: enough is free for"
        f" {_names(requests)}, but what goes to the first is what a later one needs"
    )


def search_given_up(requests: Sequence[DeviceRequest]) -> str:
    """Of requests that nobody knows how to meet, nor that they cannot be met."""
    return (
        "enough of each class is free, but no devices were found for all together:"
        f" {_names(requests)}; the search was given up, since there are too many ways to try"
    )


def _names(requests: Sequence[DeviceRequest]) -> str:
    return ", ".join(dict.fromkeys(each.class_name for each in requests))
