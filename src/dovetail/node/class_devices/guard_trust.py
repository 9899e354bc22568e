"""Trust by the guard: allocations are believed while the API server says who writes them.

The source of class devices asks for every pod that has some; the API server is asked about once a
minute. What it last said is kept in a file, for times when it is away: pods cannot be changed then,
either. Nobody who was not told once that the guard is there gives anything away.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from dovetail.core.errors import DovetailError
from dovetail.node.sdk.files import write_atomically

LOG = structlog.get_logger("dovetail.node.class_devices")

AskGuard = Callable[[], Awaitable[str | None]]
"""What the guard of the cluster lacks; None if it is there as it should be. Raises DovetailError if
nobody can tell."""

REMEDY = (
    "`dovetail manifests guard | kubectl apply --server-side -f -` installs it; the setting "
    "devices.trust_annotations of the agent does without"
)
GUARDED = b"guarded\n"
FRESH_SECONDS = 60.0
"""For which an answer counts; of one that says no, and of none, a shorter time."""
AGAIN_SECONDS = 5.0
ANSWER_SECONDS = 3.0


class GuardTrust:
    """A `Trust`."""

    def __init__(
        self, ask: AskGuard, file: Path, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`file`: where it is remembered that the guard was there."""
        self._ask, self._file, self._clock = ask, file, clock
        self._asking = asyncio.Lock()
        self._until = float("-inf")
        self._why_not: str | None = None
        self._said: str | None = ""

    async def why_not(self) -> str | None:
        async with self._asking:
            if self._clock() >= self._until:
                self._why_not = await self._found()
                fresh = FRESH_SECONDS if self._why_not is None else AGAIN_SECONDS
                self._until = self._clock() + fresh
                self._log(self._why_not)
            return self._why_not

    async def _found(self) -> str | None:
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                lacking = await self._ask()
        except TimeoutError:
            return self._remembered("the API server does not answer")
        except DovetailError as error:
            return self._remembered(str(error))
        self._remember(is_guarded=lacking is None)
        if lacking is None:
            return None
        return f"anybody may have written which devices the pod has: {lacking}; {REMEDY}"

    def _remembered(self, error: str) -> str | None:
        try:
            if self._file.read_bytes() == GUARDED:
                return None
        except OSError:
            pass
        return (
            "it is not known whether anybody may have written which devices the pod has, for the "
            f"cluster's guard cannot be read: {error}; {REMEDY}"
        )

    def _remember(self, *, is_guarded: bool) -> None:
        try:
            if not is_guarded:
                self._file.unlink(missing_ok=True)
            elif not self._file.exists():
                write_atomically(self._file, GUARDED)
        except OSError as error:
            LOG.warning("guard not remembered", file=str(self._file), error=str(error))

    def _log(self, why_not: str | None) -> None:
        if why_not != self._said:
            if why_not is None:
                LOG.info("allocations are trusted")
            else:
                LOG.warning("allocations are not trusted", why=why_not)
        self._said = why_not


class Distrusting:
    """A `Trust`: of an agent that has nobody to ask."""

    async def why_not(self) -> str | None:
        return (
            "it is not known whether anybody may have written which devices the pod has: the agent "
            f"has no way to the API server (devices.kubeconfig); {REMEDY}"
        )
