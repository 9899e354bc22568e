"""Token bucket: a limit on the rate of something, with a burst; no tasks, the clock is handed in.

The recorder of Kubernetes' events waits by it, the pod resources API of the node agent refuses.
"""

from __future__ import annotations

from collections.abc import Callable


class TokenBucket:
    """Lets through so many a second on average, and a few more at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._tokens, self._at = burst, clock()

    def take(self) -> bool:
        """Take a token if there is one."""
        self._refill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def wait_seconds(self) -> float:
        """Take a token, be it one to come; how long to wait before using it."""
        self._refill()
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def _refill(self) -> None:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
