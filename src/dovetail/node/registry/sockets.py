"""Discovery of sockets in the plugin directories, by polling; the registry looks.

They are looked through twice a second instead of being watched by inotify: a look is cheap, misses
nothing however short the moment, and needs none of the few watches a node full of containers has.
A socket that was deleted and made again is told by its inode and the time it changed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple


class SocketIdentity(NamedTuple):
    """Two of a kind that differ here are different sockets, even at one path."""

    changed: int
    """In nanoseconds of the wall clock: when it got its name. The kernel's clock for this ticks in
    milliseconds; of two made within a tick the inode decides, the same way at every look."""
    inode: int
    device: int


def sockets(directories: Iterable[Path]) -> Mapping[str, SocketIdentity]:
    """By path, in order. Names that start with a dot are drafts, and none of ours."""
    found: dict[str, SocketIdentity] = {}
    # A directory reached by two ways has its sockets listed once, by the first.
    known: set[tuple[int, int]] = set()
    for directory in directories:
        for path, identity in sorted(_below(str(directory))):
            if (identity.inode, identity.device) not in known:
                known.add((identity.inode, identity.device))
                found[path] = identity
    return found


def socket_at(path: str) -> SocketIdentity | None:
    """Nothing if there is no socket."""
    try:
        found = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    if not stat.S_ISSOCK(found.st_mode):
        return None
    return SocketIdentity(found.st_ctime_ns, found.st_ino, found.st_dev)


def _below(directory: str) -> Iterable[tuple[str, SocketIdentity]]:
    waiting = [directory]
    while waiting:
        for path, is_directory in _entries(waiting.pop()):
            if is_directory:
                waiting.append(path)
            elif identity := socket_at(path):
                yield path, identity


def _entries(directory: str) -> Iterable[tuple[str, bool]]:
    """Paths, and whether they are directories."""
    try:
        with os.scandir(directory) as entries:
            return [
                (entry.path, entry.is_dir(follow_symlinks=False))
                for entry in entries
                if not entry.name.startswith(".") and _is_text(entry.name)
            ]
    except OSError:
        # Gone, or not there yet; it is looked for again.
        return ()


def _is_text(name: str) -> bool:
    """Nothing can be connected by another name, nor told about it."""
    return not any("\ud800" <= each <= "\udfff" for each in name)


def remove_sockets(directory: Path) -> None:
    """The cue for plugins of the older kind to register again; other files stay."""
    for entry in sorted(directory.iterdir()):
        if entry.is_socket():
            entry.unlink(missing_ok=True)
