"""Cooperative pace: long work on the event loop gives way to others every few milliseconds.

The HTTP edge encodes, decodes and checks long documents at it. A thread would not help where the
work is done in C with the interpreter's lock held.

Neither would pieces if the garbage collector went through hundreds of thousands of objects in one
step. What long work has in its hands is therefore taken out of the collector's sight whenever it
gives way (`gc.freeze`, a matter of microseconds), and is back in it once the work is done
(`collect_again`, which whoever has it done calls). Documents have no cycles: they go by themselves.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

GIVE_WAY_AFTER_SECONDS = 0.01


class Pace:
    """Counts from when it is made."""

    def __init__(self) -> None:
        self._due = time.monotonic() + GIVE_WAY_AFTER_SECONDS

    async def give_way(self) -> None:
        """Let others on the event loop run if it is time to; call it often."""
        if time.monotonic() > self._due:
            spare_collector()
            await asyncio.sleep(0)
            self._due = time.monotonic() + GIVE_WAY_AFTER_SECONDS

    async def run(self, work: Generator[None, None, T]) -> T:
        """The result of work that yields wherever it may be interrupted."""
        return await run_in_steps(work, self.give_way)


async def run_in_steps(work: Generator[None, None, T], between: Callable[[], Awaitable[None]]) -> T:
    """The result of work that yields wherever `between` may be awaited."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            result: T = end.value
            return result
        await between()


_SPARED = False


def spare_collector() -> None:
    """Take all objects that there are out of the sight of the garbage collector, until
    `collect_again`."""
    global _SPARED  # noqa: PLW0603
    gc.freeze()
    _SPARED = True


@contextmanager
def collector_paused() -> Iterator[None]:
    """For work of a second at most that makes many objects and cannot be stopped on the way, such
    as decoding in a thread: nothing is collected meanwhile, and what was made is spared."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        spare_collector()
        if was_enabled:
            gc.enable()


def collect_again() -> None:
    """Give the garbage collector back what it was spared; nothing is collected by this alone."""
    global _SPARED  # noqa: PLW0603
    if _SPARED:
        _SPARED = False
        gc.unfreeze()
