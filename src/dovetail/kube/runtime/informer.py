"""Informer: a local cache of one kind, kept by list and watch; schedulers and controllers read it.

A list brings everything, a watch what changed since. A watch that ended goes on from the last
version heard of; if that is too old, the list is taken again and compared with what is here, so
that whoever listens hears of what was missed. Nobody is told of what did not change.

A cluster that was restored from a backup is behind us. It would accept our watch and say nothing
until it has caught up with our version, and never tell what the restore undid. So it is asked for
its version before a watch goes on.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import aclosing
from typing import Generic, TypeVar

import structlog

from dovetail.aio.backoff import Backoff
from dovetail.kube.api.port import ApiError, ApiGone, ApiUnreachable, KubeApi, WatchEvent
from dovetail.kube.runtime.metrics import (
    CACHED,
    CONTACT,
    HANDLER_FAILURES,
    RELISTS,
    WATCH_ENDS,
    WATCH_EVENTS,
)
from dovetail.podfit.objects import KubeObject

LOG = structlog.get_logger("dovetail.kube.informer")

T = TypeVar("T", bound=KubeObject)
Handler = Callable[[T | None, T | None], None]
"""Told (old, new); no old: it is new, no new: it is gone. Must not block."""

STEADY_SECONDS = 5.0
"""A watch that lasted this long was a good one: the next trouble is a first trouble."""
TOO_MANY = 429
NOTHING = "metadata.name=dovetail-asks-for-the-version"
"""A list of next to nothing, which is all the same of the newest version."""
OBJECTS_PER_YIELD = 200
"""Objects of a list that are taken in before the informer yields to others on the event loop."""


class Informer(Generic[T]):
    def __init__(
        self,
        api: KubeApi,
        kind: type[T],
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        *,
        transform: Callable[[T], T] | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        """`transform` takes out of an object what nobody here reads: it is not kept, and what
        changes of it is told to nobody. Must not raise."""
        self._api = api
        self._kind = kind
        self._where = {"namespace": namespace, "labels": labels, "fields": fields}
        self._transform = transform
        self._backoff = backoff or Backoff()
        self._handlers: list[Handler[T]] = []
        self._version: str | None = None
        self._synced = asyncio.Event()
        self._name = kind.API.kind
        self.heard_at = -math.inf
        """When the server last told something, be it that there is nothing new; by the loop's
        clock."""
        self.store: dict[str, T] = {}
        """Key -> object, the newest heard of."""
        self._awaited: list[tuple[str, asyncio.Future[None]]] = []
        """Versions that somebody waits for."""

    def on(self, handler: Handler[T]) -> None:
        """Tell `handler` of every change, starting with all that is here already."""
        self._handlers.append(handler)
        for each in list(self.store.values()):
            self._call(handler, None, each)

    async def synced(self) -> None:
        """Until the first list was taken in."""
        await self._synced.wait()

    async def reached(self, version: str) -> None:
        """Until all that was written up to this version was taken in."""
        if self._version is None or is_newer(version, self._version):
            waits = version, asyncio.get_running_loop().create_future()
            self._awaited.append(waits)
            try:
                await waits[1]
            finally:
                self._awaited.remove(waits)

    async def run(self) -> None:
        """List and watch until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            await self._once()
            if loop.time() - started >= STEADY_SECONDS:
                self._backoff.reset()
            # Also after an orderly end: a server that closes watches at once must not be hurried.
            await asyncio.sleep(self._backoff.next())

    async def _once(self) -> None:
        """A list, if there is no version to go on from, and one watch, however they end."""
        why = "closed"
        try:
            if self._version is None or await self._has_gone_back(self._version):
                await self._list()
            await self._watch()
        except ApiGone:
            why, self._version = "gone", None
        except ApiUnreachable as error:
            why = "cut"
            LOG.info("watch cut", kind=self._name, error=str(error))
        except ApiError as error:
            why = "refused"
            if error.code != TOO_MANY:
                # It may be our version that the server cannot serve: start over with a list.
                self._version = None
            LOG.warning("watch refused", kind=self._name, code=error.code, error=str(error))
        WATCH_ENDS.labels(self._name, why).inc()

    async def _has_gone_back(self, version: str) -> bool:
        """Whether the server has gone back behind `version`."""
        where = {**self._where, "labels": "", "fields": NOTHING}
        there = (await self._api.list(self._kind, **where)).resource_version
        if not is_newer(version, there):
            self._note_contact()
            return False
        LOG.warning("server went back", kind=self._name, version=version, to=there)
        self._version = None
        return True

    async def _list(self) -> None:
        RELISTS.labels(self._name).inc()
        listing = await self._api.list(self._kind, **self._where)
        here = {each.key: each for each in listing.items}
        for key in [key for key in self.store if key not in here]:
            self._take(key, None)
        for count, (key, each) in enumerate(here.items(), 1):
            self._take(key, each)
            if count % OBJECTS_PER_YIELD == 0:
                await asyncio.sleep(0)
        self._note_version(listing.resource_version)
        self._synced.set()

    async def _watch(self) -> None:
        assert self._version is not None
        async with aclosing(self._api.watch(self._kind, self._version, **self._where)) as changes:
            async for seen in changes:
                self._change(seen)

    def _change(self, seen: WatchEvent[T]) -> None:
        WATCH_EVENTS.labels(self._name, seen.type).inc()
        if self._version is not None and not is_newer(seen.version, self._version):
            return
        if seen.object is not None:
            self._take(seen.object.key, None if seen.type == "DELETED" else seen.object)
        self._note_version(seen.version)

    def _note_version(self, version: str) -> None:
        self._version = version
        for awaited, seen in self._awaited:
            if not (seen.done() or is_newer(awaited, version)):
                seen.set_result(None)
        self._note_contact()
        CACHED.labels(self._name).set(len(self.store))

    def _note_contact(self) -> None:
        self.heard_at = asyncio.get_running_loop().time()
        CONTACT.labels(self._name).set_to_current_time()

    def _take(self, key: str, new: T | None) -> None:
        """Put `new` in the store, or take what is there out of it, and tell the handlers."""
        old = self.store.get(key)
        if new is not None and self._transform is not None:
            new = self._transform(new)
        if new is None:
            if old is not None:
                del self.store[key]
                self._tell(old, None)
            return
        if old is not None and old.metadata.uid != new.metadata.uid:
            # Deleted and made anew, unseen: two things that share a name.
            del self.store[key]
            self._tell(old, None)
            old = None
        # After a restore, a version can come again with something else in it.
        if old is None or old != new:
            self.store[key] = new
            self._tell(old, new)

    def _tell(self, old: T | None, new: T | None) -> None:
        for handler in self._handlers:
            self._call(handler, old, new)

    def _call(self, handler: Handler[T], old: T | None, new: T | None) -> None:
        try:
            handler(old, new)
        except Exception:
            HANDLER_FAILURES.labels(self._name).inc()
            which = (new or old or self._kind()).key
            LOG.exception("handler failed", kind=self._name, key=which)


def is_newer(version: str, than: str) -> bool:
    """A watch tells changes in the order of versions: one that is not newer was told before.

    Versions are decimal numbers of any length; one that is not, is taken for new.
    """
    if version.isdecimal() and than.isdecimal():
        return int(version) > int(than)
    return version != than
