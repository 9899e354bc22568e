"""Trust: whether the allocation on a pod can only be the scheduler's (protocol).

Whoever may edit a pod could write himself a device. The source of class devices asks before it
reads an allocation; who answers knows whether the guard is installed in the cluster.
"""

from __future__ import annotations

from typing import Protocol


class Trust(Protocol):
    async def why_not(self) -> str | None:
        """Why allocations on pods are not to be believed, and the remedy; None if they are."""
        ...


class Trusting:
    """A `Trust`: of an agent that was told to believe allocations, whoever wrote them."""

    async def why_not(self) -> str | None:
        return None
