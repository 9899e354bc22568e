"""What can be wrong with a workload, or with what is to be done with it."""

from __future__ import annotations

from dovetail.core.errors import DovetailError


class BadWorkload(DovetailError):
    """A file cannot be read."""

    def __init__(self, where: str, what: str) -> None:
        # Both are kept as they are: on its way from another process it is made anew from them.
        super().__init__(where, what)

    def __str__(self) -> str:
        return ": ".join(self.args)


class BadPlan(DovetailError):
    """What was asked for cannot be done."""
