"""Archives of charts and profiles, unpacked without trust: the renderer calls it.

An archive is read as a stream, with a limit on what comes out of it, so that neither a bomb nor a
header that claims a size costs more than the limit. Only files and directories below the target are
made: no links, no devices, no absolute paths, nothing that steps out, nothing there twice.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from pathlib import Path, PurePosixPath

from dovetail.core.errors import Malformed

MOST_MEMBERS = 10_000
MOST_BYTES = 64 * 2**20
"""Of the archive, unpacked."""
DEEPEST = 32
LONGEST_NAME = 255
LONGEST_PATH = 1024
GZIP = b"\x1f\x8b"
TAR_MAGIC, TAR_MAGIC_AT = b"ustar", 257
CHART = "Chart.yaml"


class BadArchive(Malformed):
    """A file that cannot be unpacked, or should not be."""


class LimitedStream(io.RawIOBase):
    """What comes out of a compressed stream, up to a limit."""

    def __init__(self, source: io.BufferedIOBase, most: int) -> None:
        self._source, self._left, self._most = source, most, most

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        # One more than is allowed shows that there is more.
        wanted = self._left + 1 if size < 0 else min(size, self._left + 1)
        found = self._source.read(wanted)
        self._left -= len(found)
        if self._left < 0:
            raise BadArchive(f"more than {self._most} bytes when unpacked")
        return found


def is_archive(content: bytes) -> bool:
    return content.startswith(GZIP) or content[TAR_MAGIC_AT:].startswith(TAR_MAGIC)


def unpack(content: bytes, target: Path) -> None:
    """Below `target`, a directory that is there and empty. Raises BadArchive."""
    raw = io.BytesIO(content)
    try:
        with gzip.GzipFile(fileobj=raw) as unzipped:
            source = unzipped if content.startswith(GZIP) else raw
            stream = LimitedStream(source, MOST_BYTES)
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                _unpack_members(archive, target)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        raise BadArchive(f"no tar archive that can be read: {error}") from error


def _unpack_members(archive: tarfile.TarFile, target: Path) -> None:
    for number, member in enumerate(archive, 1):
        if number > MOST_MEMBERS:
            raise BadArchive(f"more than {MOST_MEMBERS} files")
        path = path_below(target, member.name)
        if member.isdir():
            _make_directory(path, member)
            continue
        if not member.isreg() or member.issparse():
            raise BadArchive(f"{member.name!r} is neither a file nor a directory")
        if member.size > MOST_BYTES:
            raise BadArchive(f"{member.name!r} has more than {MOST_BYTES} bytes")
        content = archive.extractfile(member)
        assert content is not None
        _make_directory(path.parent, member)
        try:
            with path.open("xb") as file:
                file.write(content.read())
        except OSError as error:
            raise BadArchive(f"{member.name!r}: {error.strerror}") from error


def _make_directory(path: Path, member: tarfile.TarInfo) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadArchive(f"{member.name!r}: {error.strerror}") from error


def path_below(target: Path, name: str) -> Path:
    """Raises BadArchive for a name that is not below it."""
    parts = PurePosixPath(name).parts
    is_bad = (
        not name
        or name.startswith("/")
        or ".." in parts
        or len(parts) > DEEPEST
        or len(name) > LONGEST_PATH
        or any(not _is_plain(part) for part in parts)
    )
    if is_bad:
        raise BadArchive(f"{name[:LONGEST_NAME]!r} is no path within an archive")
    return target.joinpath(*parts)


def _is_plain(part: str) -> bool:
    try:
        return len(part.encode()) <= LONGEST_NAME and "\0" not in part and "\\" not in part
    except UnicodeEncodeError:
        return False


def chart_directory(root: Path, app: str) -> Path:
    """Of an unpacked chart: the directory of the app's name, or the only one there is. Raises
    BadArchive."""
    found = sorted(path.parent for path in root.glob(f"*/{CHART}"))
    if (root / CHART).is_file():
        return root
    if root / app in found:
        return root / app
    if len(found) == 1:
        return found[0]
    there = ", ".join(each.name for each in (found or sorted(root.iterdir()))[:10]) or "nothing"
    if not found:
        raise BadArchive(f"no chart: there is no {CHART} in a directory at its top, but {there}")
    raise BadArchive(f"several charts, and none has the name of the app ({app}): {there}")
