"""Rate limit: a token bucket for each caller, in this process; admission and issuer keys use it."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

from dovetail.rest.server.errors import HttpError
from dovetail.rest.server.settings import RateSettings

MOST_CALLERS = 10_000


class RateLimiter:
    """Buckets of the callers seen last; one that was forgotten starts full again."""

    def __init__(
        self,
        per_second: float,
        burst: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        most: int = MOST_CALLERS,
    ) -> None:
        self._rate, self._burst, self._clock, self._most = per_second, burst, clock, most
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, caller: str) -> float:
        """Take one and return 0; or, with none left, the seconds until there is one."""
        now = self._clock()
        level, then = self._buckets.pop(caller, (float(self._burst), now))
        level = min(self._burst, level + (now - then) * self._rate)
        wait = 0.0 if level >= 1 else (1 - level) / self._rate
        self._buckets[caller] = (level - (wait == 0), now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return wait

    def give_back(self, caller: str) -> None:
        """What was taken last counts for nothing after all."""
        level, then = self._buckets.get(caller, (float(self._burst), self._clock()))
        self._buckets[caller] = (min(self._burst, level + 1), then)

    def another(self) -> RateLimiter:
        """One that allows as much, and has counted nothing yet."""
        return RateLimiter(self._rate, self._burst, clock=self._clock, most=self._most)

    def admit(self, caller: str) -> None:
        wait = self.wait(caller)
        if wait:
            raise HttpError(
                429,
                f"This caller may ask {self._rate:g} times a second.",
                headers={"retry-after": str(math.ceil(wait))},
            )


def limiter_of(settings: RateSettings) -> RateLimiter | None:
    if settings.limit is None:
        return None
    per_second = float(settings.limit.removesuffix("/s"))
    return RateLimiter(per_second, settings.burst or max(1, math.ceil(2 * per_second)))
