"""A pod source: a directory of manifests, as JSON or YAML, several in a file if need be."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import structlog
import yaml

from dovetail.aio.single_flight import NextRun
from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.sources.known_pods import KnownPods

LOG = structlog.get_logger("dovetail.node.sources")

ENDINGS = (".json", ".yaml", ".yml")
TRIES, RETRY_SECONDS = 3, 0.2
"""Looks for a pod that is not there, and seconds between them."""


class ReadManifest(NamedTuple):
    """A file as it was at a time."""

    stamp: tuple[int, ...]
    documents: list[tuple[str, Any]] | None
    """None: it makes no sense."""


class ManifestDirectory:
    """A `ports.PodSource`. Files are read again when they changed."""

    def __init__(
        self,
        path: Path,
        *,
        endings: Sequence[str] = ENDINGS,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        """`endings` of the names of files; none if all files count."""
        self._path, self._endings, self._retry_seconds = path, endings, retry_seconds
        self._files: dict[Path, ReadManifest] = {}
        self._looking = NextRun(partial(asyncio.to_thread, self._look))

    async def pod(self, sandbox: Sandbox) -> Pod | None:
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(self._retry_seconds)
            known, _ = await self._looking.join()
            if pod := known.pod(sandbox):
                return pod
        return None

    async def active(self) -> Sequence[Pod] | None:
        """Not known if any file cannot be read: nobody can tell which pods are in it."""
        known, complete = await self._looking.join()
        return known.active() if complete else None

    async def known(self) -> KnownPods:
        """What can be read of it now."""
        known, _ = await self._looking.join()
        return known

    def _look(self) -> tuple[KnownPods, bool]:
        before = self._files
        try:
            paths = sorted(self._path.iterdir())
        except OSError as error:
            LOG.warning("pods not known", why=str(error))
            return KnownPods(()), False
        chosen = [each for each in paths if self._is_chosen(each)]
        files = {each: _read(each, before.get(each)) for each in chosen}
        self._files = files
        complete = all(each.documents is not None for each in files.values())
        return KnownPods(pod for each in files.values() for pod in each.documents or ()), complete

    def _is_chosen(self, path: Path) -> bool:
        if path.name.startswith(".") or path.is_dir():
            return False
        return not self._endings or path.suffix in self._endings


def _read(path: Path, before: ReadManifest | None) -> ReadManifest:
    try:
        status = path.stat()
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        if before and before.stamp == stamp:
            return before
        # JSON is YAML, and the faster reader is not always there.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        found = list(yaml.load_all(path.read_bytes(), loader))
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        LOG.warning("no manifest", path=str(path), why=str(error))
        return ReadManifest((), None)
    pods = [each for document in found for each in _listed(document)]
    return ReadManifest(
        stamp, [(f"{path} (document {at})", each) for at, each in enumerate(pods, 1)]
    )


def _listed(document: Any) -> list[Any]:
    if document is None:
        return []
    if isinstance(document, dict) and isinstance(document.get("items"), list):
        return list(document["items"])
    return [document]
