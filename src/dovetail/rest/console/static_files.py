"""Static files of the console: the built bundle, if there is one, and the plain stylesheet.

The bundle is built beside the server and may come while it runs; pages look for its manifest when
they are made. Files whose names hold a digest of their content never change.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
from functools import lru_cache
from pathlib import Path

import msgspec

from dovetail.rest.server.errors import not_found
from dovetail.rest.server.headers import accepts_gzip, has_seen
from dovetail.rest.server.http import Call, Reply

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
PLAIN_STYLE = "plain.css"
"""Committed beside this module: it is there before anything is built."""
FILE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
HASHED = re.compile(r".*-[A-Za-z0-9_-]{8}\.[a-z0-9]+")
"""As Vite names what it builds."""
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".map": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
UNCHANGING = "public, max-age=31536000, immutable"
REVALIDATED = "no-cache"


class BuiltEntry(msgspec.Struct, frozen=True):
    """What Vite's manifest says of a chunk."""

    file: str
    css: tuple[str, ...] = ()
    isEntry: bool = False  # noqa: N815 (Vite's word)


class ConsoleBundle(msgspec.Struct, frozen=True):
    """What a page refers to, by paths below `static`."""

    scripts: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()


class StaticFile(msgspec.Struct, frozen=True):
    content: bytes
    compressed: bytes
    etag: str


async def show(call: Call) -> Reply:
    """A file of the bundle, or the plain stylesheet."""
    folder, file = call.params.get("folder"), call.params["file"]
    if not FILE_NAME.fullmatch(file) or folder not in (None, "assets"):
        raise not_found()
    path = (
        FOLDER / file if file == PLAIN_STYLE and folder is None else STATIC / (folder or "") / file
    )
    kind = KINDS.get(path.suffix)
    found = await asyncio.to_thread(file_at, path) if kind else None
    if found is None:
        raise not_found()
    headers = {
        "etag": found.etag,
        "cache-control": UNCHANGING if HASHED.fullmatch(file) else REVALIDATED,
        "vary": "accept-encoding",
    }
    if has_seen(call.request.headers, found.etag):
        return Reply(304, headers=headers, content_type=None)
    if accepts_gzip(call.request.headers):
        headers["content-encoding"] = "gzip"
        return Reply(200, found.compressed, headers, kind)
    return Reply(200, found.content, headers, kind)


def file_at(path: Path) -> StaticFile | None:
    try:
        known = path.stat()
        return read(path, known.st_mtime_ns, known.st_size)
    except OSError:
        return None


@lru_cache(64)
def read(path: Path, _changed: int, _size: int) -> StaticFile:
    """Kept until the file is another one."""
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()[:20]
    return StaticFile(content, gzip.compress(content, 9, mtime=0), f'"{digest}"')


def bundle() -> ConsoleBundle:
    """Of the console as far as it is built: nothing, if it isn't."""
    manifest = file_at(STATIC / "manifest.json")
    return ConsoleBundle() if manifest is None else bundle_in(manifest.content)


@lru_cache(4)
def bundle_in(manifest: bytes) -> ConsoleBundle:
    try:
        chunks = msgspec.json.decode(manifest, type=dict[str, BuiltEntry])
    except msgspec.DecodeError:
        # It is being written at this moment.
        return ConsoleBundle()
    entries = [each for each in chunks.values() if each.isEntry]
    styles = dict.fromkeys(style for each in entries for style in each.css)
    return ConsoleBundle(tuple(each.file for each in entries), tuple(styles))
