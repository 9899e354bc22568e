"""Work queue of a controller: keys that need work, each worked on by one worker at a time.

A key that is added while it is worked on comes again afterwards, so the last change is always seen.
A key whose work fails comes again later each time, until it succeeds. All wait in one line: a key
that keeps coming back goes to the end of it.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import structlog

from dovetail.aio.backoff import jittered
from dovetail.core.errors import DovetailError
from dovetail.kube.runtime.metrics import QUEUE_DEPTH, QUEUE_RETRIES, QUEUE_WAIT, QUEUE_WORK

LOG = structlog.get_logger("dovetail.kube.workqueue")

Work = Callable[[str], Awaitable[None]]
"""Makes things for one key as they should be; raises if it must be tried again."""


class WorkQueue:
    def __init__(self, name: str, *, first: float = 0.05, cap: float = 300.0) -> None:
        self._name = name
        self._first, self._cap = first, cap
        self._waiting: OrderedDict[str, float] = OrderedDict()
        self._working: set[str] = set()
        self._again: set[str] = set()
        self._later: dict[str, tuple[float, asyncio.Handle]] = {}
        """When each comes again; uvloop has no timers for less than a millisecond to ask that."""
        self._failures: dict[str, int] = {}
        self._ready = asyncio.Semaphore(0)

    def __len__(self) -> int:
        """Keys that wait for a worker now."""
        return len(self._waiting)

    def add(self, key: str) -> None:
        """Work on `key` soon."""
        if key in self._working:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting[key] = time.monotonic()
            QUEUE_DEPTH.labels(self._name).set(len(self._waiting))
            self._ready.release()

    def add_after(self, key: str, seconds: float) -> None:
        """Work on `key` in a while; of several whiles, the one that ends first counts."""
        loop = asyncio.get_running_loop()
        due = loop.time() + seconds
        if key in self._later:
            sooner, timer = self._later[key]
            if sooner <= due:
                return
            timer.cancel()
        self._later[key] = due, loop.call_later(seconds, self._due, key)

    async def run(self, work: Work, workers: int = 1) -> None:
        """Until cancelled. What was being worked on then is left as it is."""
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._work(work))

    def close(self) -> None:
        """Nothing that waits for its time comes any more."""
        for _, timer in self._later.values():
            timer.cancel()
        self._later.clear()

    def _due(self, key: str) -> None:
        del self._later[key]
        self.add(key)

    async def _work(self, work: Work) -> None:
        while True:
            await self._ready.acquire()
            key, added = self._waiting.popitem(last=False)
            self._working.add(key)
            QUEUE_DEPTH.labels(self._name).set(len(self._waiting))
            started = time.monotonic()
            QUEUE_WAIT.labels(self._name).observe(started - added)
            try:
                await self._try(work, key)
            finally:
                QUEUE_WORK.labels(self._name).observe(time.monotonic() - started)
                self._working.discard(key)
                if key in self._again:
                    self._again.discard(key)
                    self.add(key)

    async def _try(self, work: Work, key: str) -> None:
        try:
            await work(key)
        except Exception as error:
            # Whatever it was, the key comes again. What is not of the domain is a bug: show where.
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            wait = jittered(failures, self._first, self._cap)
            QUEUE_RETRIES.labels(self._name).inc()
            LOG.warning(
                "work failed",
                queue=self._name,
                key=key,
                error=repr(error),
                again_in=round(wait, 2),
                exc_info=None if isinstance(error, DovetailError) else error,
            )
            self.add_after(key, wait)
        else:
            self._failures.pop(key, None)
