"""What can be wrong with a workload, or with what is to be done with it."""

from __future__ import annotations

from dovetail.core.errors import DovetailError


class BadWorkload(DovetailError):
    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")


class BadPlan(DovetailError):
    """What was asked for cannot be done."""
