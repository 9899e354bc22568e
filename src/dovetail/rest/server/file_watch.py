"""File watch by metadata: whether token files and certificates changed since the last look.

A look costs microseconds, so it is done whenever the content is needed: no timer, no signal.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

Stamp = tuple[int, int, int, int]
MISSING: Stamp = (0, 0, 0, 0)
SETTLED_SECONDS = 2.0


class FileWatch:
    def __init__(self, *paths: Path, clock: Callable[[], float] = time.time) -> None:
        self._paths, self._clock = paths, clock
        self._seen: tuple[Stamp, ...] | None = None
        self._settled = False

    def changed(self) -> bool:
        """Whether to read the files (again). Ask first, read then: a later change is not missed."""
        stamps = tuple(stamp(path) for path in self._paths)
        if self._settled and stamps == self._seen:
            return False
        # Times of files are coarse: a second change right after this one might not show in them.
        newest = max(changed for _, _, changed, _ in stamps) / 1e9
        self._settled = abs(self._clock() - newest) > SETTLED_SECONDS
        self._seen = stamps
        return True


def stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError:
        return MISSING
    return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size
