"""The diff between settings wanted, applied and observed of a running container. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.cpus import BadCpuList, CpuSet

V = TypeVar("V")

COLUMNS = ("numbers", "hugepages", "unified")
SETS = ("cpus", "mems")
"""The fields that can be changed while a container runs."""


def difference(
    wanted: ContainerSettings, applied: ContainerSettings, observed: ContainerSettings
) -> ContainerSettings:
    """The fields that are wanted otherwise than they are.

    What is observed counts. What cannot be observed is believed to be as it was `applied` last; so
    a value that the runtime never shows is applied once, and not every time.
    """
    changes: dict[str, Any] = {}
    for name in SETS:
        value, now = getattr(wanted, name), getattr(observed, name) or getattr(applied, name)
        changes[name] = value if value != now else ""
    for name in COLUMNS:
        now = {**getattr(applied, name), **getattr(observed, name)}
        changes[name] = _others(getattr(wanted, name), now)
    return ContainerSettings(**changes)


def drift_of(applied: ContainerSettings, observed: ContainerSettings) -> ContainerSettings:
    """The fields that somebody else changed since, with the values they have now."""
    changes: dict[str, Any] = {}
    for name in SETS:
        before, now = getattr(applied, name), getattr(observed, name)
        changes[name] = now if before and now and now != before else ""
    for name in COLUMNS:
        before, now = getattr(applied, name), getattr(observed, name)
        changes[name] = _others({key: now[key] for key in before if key in now}, before)
    return ContainerSettings(**changes)


def is_narrowing(change: ContainerSettings, observed: ContainerSettings) -> bool:
    """Whether the container only loses CPUs, which others may be waiting for."""
    try:
        return bool(change.cpus) and CpuSet.parse(change.cpus) < CpuSet.parse(observed.cpus)
    except BadCpuList:
        return False


def description_of(change: ContainerSettings) -> dict[str, Any]:
    """The fields that are not empty, for a line of a log."""
    return {name: value for name in (*SETS, *COLUMNS) if (value := getattr(change, name))}


def _others(wanted: Mapping[str, V], now: Mapping[str, V]) -> dict[str, V]:
    return {key: value for key, value in wanted.items() if now.get(key) != value}
