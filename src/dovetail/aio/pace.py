"""Cooperative pace: long work on the event loop gives way to others every few milliseconds.

The HTTP edge encodes, decodes and checks long documents at it. A thread would not help where the
work is done in C with the interpreter's lock held.

Neither would pieces if the garbage collector went through all objects in one step: a long document
has hundreds of thousands, none of them garbage. So while long work is under way the collector looks
at young objects only (`collector_spared`); documents have no cycles and go by themselves. What
there is when a server starts stays for good: it is put out of sight (`retire_startup_objects`).
A pass over all objects, between long work, then meets what was made since and is still there.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

GIVE_WAY_AFTER_SECONDS = 0.01

NEVER = 2**31 - 1
"""Passes over middle-aged objects after which all are looked at."""

MOST_SPARED_SECONDS = 60
"""How long work may overlap without a pass over all objects: cycles might gather."""


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


class _SparedCollector:
    """Counts who is at long work, in all threads; while there is any, young objects alone are
    collected."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers = 0
        self._since = 0.0
        self._thresholds = gc.get_threshold()

    def begin(self) -> None:
        with self._lock:
            self._workers += 1
            if self._workers == 1:
                self._since, self._thresholds = time.monotonic(), gc.get_threshold()
                gc.set_threshold(*self._thresholds[:2], NEVER)
            elif time.monotonic() > self._since + MOST_SPARED_SECONDS:
                gc.set_threshold(*self._thresholds)

    def end(self) -> None:
        with self._lock:
            self._workers -= 1
            if not self._workers:
                gc.set_threshold(*self._thresholds)


_COLLECTOR = _SparedCollector()


@contextmanager
def collector_spared() -> Iterator[None]:
    """For work that makes very many objects: no pass over all of them meanwhile."""
    _COLLECTOR.begin()
    try:
        yield
    finally:
        _COLLECTOR.end()


class _RequestWork:
    """The work for one request, which may turn out to be long; threads may go on after its end."""

    __slots__ = ("_is_long", "_is_over", "_lock")

    def __init__(self) -> None:
        self._is_long = self._is_over = False
        self._lock = threading.Lock()

    def is_found_long(self) -> None:
        with self._lock:
            if not self._is_long and not self._is_over:
                self._is_long = True
                _COLLECTOR.begin()

    def end(self) -> None:
        with self._lock:
            self._is_over = True
            if self._is_long:
                _COLLECTOR.end()


_REQUEST: ContextVar[_RequestWork | None] = ContextVar("request", default=None)


@contextmanager
def work_of_any_length() -> Iterator[None]:
    """Around all that is done for one request: from when it first gives way to its end, the
    collector is spared. What it has done in threads counts (`asyncio.to_thread`)."""
    work = _RequestWork()
    before = _REQUEST.set(work)
    try:
        yield
    finally:
        _REQUEST.reset(before)
        work.end()


def spare_collector() -> None:
    """Tell that the request that is worked for is a long one."""
    work = _REQUEST.get()
    if work is not None:
        work.is_found_long()


def retire_startup_objects() -> None:
    """Take all objects that there are out of the collector's sight for good: modules, functions and
    what else a server is made of, which is most of what a pass over all would go through."""
    gc.collect()
    gc.freeze()
