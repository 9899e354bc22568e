"""A Kubernetes API in memory, for tests: `kube.api.port.KubeApi`, as the real one answers.

Versions, watches from a version, selectors, conflicts, preconditions, status apart from the rest,
finalizers, graceful deletion of bound pods, binding, server-side apply. Not here: admission,
defaults, validation, namespaces that must exist. Tests can have it fail: `cut`, `close`, `expire`,
`bookmark`, `repeat`, `backup`, and `before`, which is called ahead of each call.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import TypeVar

import msgspec

from dovetail.kube.api.port import ApiConflict, ApiError, ApiUnreachable, Body, Listing, WatchEvent
from dovetail.podfit.objects import ApiResource, KubeObject, Pod
from tests.support.kube.api_selectors import matcher
from tests.support.kube.raw_objects import (
    Change,
    Raw,
    as_seen,
    checked,
    copied,
    gone,
    key_of,
    merged,
    missing,
    now,
)
from tests.support.kube.server_side_apply import Fields, applied

T = TypeVar("T", bound=KubeObject)
Before = Callable[[str, type[KubeObject], str], Awaitable[None]]
"""Called with verb, kind and name (or ""); may wait or raise."""


Told = Change | Exception | int | None
"""To a watch: a change, an error, a bookmark's version, or its end."""


class MemoryApi:
    def __init__(self) -> None:
        self.version = 1
        self.objects: dict[ApiResource, dict[str, Raw]] = {}
        self.calls: Counter[tuple[str, str]] = Counter()
        """Calls by verb and kind."""
        self.before: Before | None = None
        self._managed: dict[tuple[ApiResource, str], dict[str, Fields]] = {}
        self._history: list[Change] = []
        self._oldest = 0
        self._watches: list[asyncio.Queue[Told]] = []
        self._names = itertools.count(1)

    # What tests do to it.

    @property
    def watches(self) -> int:
        return len(self._watches)

    def cut(self) -> None:
        """Every watch breaks off."""
        self._shout(ApiUnreachable("the connection was cut"))

    def close(self) -> None:
        """Every watch ends in order, as after its timeout."""
        self._shout(None)

    def bookmark(self) -> None:
        self._shout(self.version)

    def repeat(self, count: int) -> None:
        """The last changes, once more."""
        for change in self._history[-count:] if count else []:
            self._shout(change)

    def compact(self) -> None:
        """Forget all history: a watch from before is refused. Open ones go on."""
        self._history.clear()
        self._oldest = self.version

    def expire(self) -> None:
        """Forget all history, and tell the watches so."""
        self.compact()
        self._shout(gone())

    def backup(self) -> Callable[[], None]:
        """Of all there is now; calling it is a restore, from which servers start anew."""
        version, objects = self.version, {api: dict(all_) for api, all_ in self.objects.items()}

        def restore() -> None:
            self.version = version
            self.objects = {api: dict(all_) for api, all_ in objects.items()}
            self.compact()
            self.cut()

        return restore

    def everything(self, kind: type[T]) -> dict[str, T]:
        """All objects of a kind by key, as they are now."""
        there = self.objects.get(kind.API, {})
        return {key: msgspec.convert(raw, kind) for key, raw in there.items()}

    def raw(self, kind: type[KubeObject], name: str, namespace: str = "") -> Raw:
        """A copy of one object with all its fields."""
        return copied(self._found(kind, key_of(name, namespace)))

    # The port.

    async def list(
        self, kind: type[T], *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Listing[T]:
        single = fields.startswith("metadata.name=")
        await self._called("list one" if single else "list", kind)
        matches = matcher(namespace, labels, fields)
        there = self.objects.get(kind.API, {})
        items = [msgspec.convert(raw, kind) for raw in there.values() if matches(raw)]
        return Listing(items, str(self.version))

    async def watch(
        self,
        kind: type[T],
        version: str,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
    ) -> AsyncGenerator[WatchEvent[T], None]:
        await self._called("watch", kind)
        if int(version) < self._oldest:
            raise gone()
        matches = matcher(namespace, labels, fields)
        inbox: asyncio.Queue[Told] = asyncio.Queue()
        for change in self._history:
            if change.version > int(version):
                inbox.put_nowait(change)
        self._watches.append(inbox)
        try:
            while (told := await inbox.get()) is not None:
                if isinstance(told, Exception):
                    raise told
                if told <= int(version) if isinstance(told, int) else told.version <= int(version):
                    # The real one, too, has nothing to say until it has come to this version.
                    continue
                if isinstance(told, int):
                    yield WatchEvent("BOOKMARK", str(told))
                elif told.api == kind.API and (seen := as_seen(told, matches)):
                    one = msgspec.convert(seen[1], kind)
                    yield WatchEvent(seen[0], one.metadata.resource_version, one)
        finally:
            self._watches.remove(inbox)

    async def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        await self._called("get", kind, name)
        return msgspec.convert(self._found(kind, key_of(name, namespace)), kind)

    async def create(
        self, kind: type[T], body: Body, *, namespace: str = "", sub: str = ""
    ) -> T | None:
        name = body["metadata"].get("name", "")
        await self._called(f"create {sub}".strip(), kind, name)
        raw = copied(body)
        meta = raw["metadata"]
        space = meta.get("namespace") or namespace
        if sub == "binding":
            self._bind(key_of(name, space), raw)
        elif sub == "eviction":
            self._delete(Pod, key_of(name, space), "", None)
        elif sub:
            raise ApiError(405, "MethodNotAllowed", f"no subresource {sub} in memory")
        else:
            if not name:
                meta["name"] = f"{meta['generateName']}{next(self._names):05}"
            return self._new(kind, raw, space)
        return None

    async def replace(self, kind: type[T], body: Body, *, sub: str = "") -> T:
        raw = copied(body)
        meta = raw["metadata"]
        await self._called(f"replace {sub}".strip(), kind, meta["name"])
        key = key_of(meta["name"], meta.get("namespace", ""))
        return self._stored(kind, key, raw, sub)

    async def apply(
        self, kind: type[T], body: Body, *, manager: str, sub: str = "", force: bool = True
    ) -> T:
        raw = copied(body)
        meta = raw["metadata"]
        await self._called(f"apply {sub}".strip(), kind, meta["name"])
        space = meta.get("namespace", "")
        key = key_of(meta["name"], space)
        old = self.objects.get(kind.API, {}).get(key)
        if old is None and sub:
            raise missing(kind, key)
        managers = self._managed.setdefault((kind.API, key), {})
        who = f"{manager}/{sub}"
        new, owned = applied(old or {}, raw, managers, who, force=force)
        made = self._new(kind, new, space) if old is None else self._stored(kind, key, new, sub)
        managers.update(owned)
        return made

    async def merge(
        self, kind: type[T], name: str, body: Body, *, namespace: str = "", sub: str = ""
    ) -> T:
        await self._called(f"merge {sub}".strip(), kind, name)
        key = key_of(name, namespace)
        old = copied(self._found(kind, key))
        if "resourceVersion" not in body.get("metadata", {}):
            old["metadata"].pop("resourceVersion")
        return self._stored(kind, key, merged(old, copied(body)), sub)

    async def delete(
        self,
        kind: type[T],
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        grace: int | None = None,
        propagation: str = "",
    ) -> None:
        await self._called("delete", kind, name)
        key = key_of(name, namespace)
        if key in self.objects.get(kind.API, {}):
            self._delete(kind, key, uid, grace)

    # Inside.

    async def _called(self, verb: str, kind: type[KubeObject], name: str = "") -> None:
        self.calls[verb, kind.API.kind] += 1
        await asyncio.sleep(0)
        if self.before is not None:
            await self.before(verb, kind, name)

    def _shout(self, told: Told) -> None:
        for inbox in self._watches:
            inbox.put_nowait(told)

    def _found(self, kind: type[KubeObject], key: str) -> Raw:
        raw = self.objects.get(kind.API, {}).get(key)
        if raw is None:
            raise missing(kind, key)
        return raw

    def _new(self, kind: type[T], raw: Raw, namespace: str) -> T:
        meta = raw["metadata"]
        key = key_of(meta["name"], namespace)
        if key in self.objects.get(kind.API, {}):
            raise ApiConflict(409, "AlreadyExists", f'{kind.API.plural} "{key}" already exists')
        if namespace:
            meta["namespace"] = namespace
        meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": now(), "generation": 1}
        if kind.API == Pod.API:
            raw.setdefault("spec", {})
            raw.setdefault("status", {"phase": "Pending"})
        return self._write(kind, key, None, raw)

    def _stored(self, kind: type[T], key: str, raw: Raw, sub: str) -> T:
        """`raw` in place of what is there, as far as `sub` lets it."""
        old = self._found(kind, key)
        checked(old, raw)
        if sub == "status":
            metadata = old["metadata"]
            if kind is Pod and "annotations" in raw["metadata"]:
                # Of pods, the API server takes them with a status, too.
                metadata = {**metadata, "annotations": raw["metadata"]["annotations"]}
            raw = {**old, "metadata": metadata, "status": raw.get("status", {})}
        else:
            raw.pop("status", None)
            raw |= {"status": old["status"]} if "status" in old else {}
        was = old["metadata"]
        meta = raw["metadata"] = {**raw["metadata"]}
        for name in ("uid", "creationTimestamp", "generation", "resourceVersion"):
            meta[name] = was[name]
        if "deletionTimestamp" in was:
            meta["deletionTimestamp"] = was["deletionTimestamp"]
        if raw == old:
            return msgspec.convert(old, kind)
        if raw.get("spec") != old.get("spec"):
            meta["generation"] = was["generation"] + 1
        if "deletionTimestamp" in meta and was.get("finalizers") and not meta.get("finalizers"):
            return self._remove(kind, key, raw)
        return self._write(kind, key, old, raw)

    def _bind(self, key: str, binding: Raw) -> None:
        pod = copied(self._found(Pod, key))
        checked(pod, binding)
        why = ""
        if pod["metadata"].get("deletionTimestamp"):
            why = "is being deleted, cannot be assigned to a host"
        elif node := pod["spec"].get("nodeName"):
            why = f'is already assigned to node "{node}"'
        elif pod["spec"].get("schedulingGates"):
            why = "has non-empty .spec.schedulingGates"
        if why:
            raise ApiConflict(409, "Conflict", f"pod {key} {why}")
        old = self._found(Pod, key)
        pod["spec"]["nodeName"] = binding["target"]["name"]
        if notes := binding["metadata"].get("annotations"):
            pod["metadata"].setdefault("annotations", {}).update(notes)
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now()}
        status = pod.setdefault("status", {})
        others = [each for each in status.get("conditions", []) if each["type"] != "PodScheduled"]
        status["conditions"] = [*others, scheduled]
        self._write(Pod, key, old, pod)

    def _delete(self, kind: type[KubeObject], key: str, uid: str, grace: int | None) -> None:
        old = self._found(kind, key)
        if uid and uid != old["metadata"]["uid"]:
            raise ApiConflict(409, "Conflict", f"{key} has another uid than {uid}")
        # A pod on a node is there until its kubelet says that it is not.
        on_node = kind.API == Pod.API and old.get("spec", {}).get("nodeName") and grace != 0
        over = old.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if not old["metadata"].get("finalizers") and not (on_node and not over):
            self._remove(kind, key, old)
        elif "deletionTimestamp" not in old["metadata"]:
            new = copied(old)
            new["metadata"]["deletionTimestamp"] = now()
            self._write(kind, key, old, new)

    def _write(self, kind: type[T], key: str, old: Raw | None, new: Raw) -> T:
        self.version += 1
        new["metadata"]["resourceVersion"] = str(self.version)
        self.objects.setdefault(kind.API, {})[key] = new
        self._record(Change(self.version, kind.API, old, new))
        return msgspec.convert(new, kind)

    def _remove(self, kind: type[T], key: str, last: Raw) -> T:
        self.version += 1
        old = self.objects[kind.API].pop(key)
        self._managed.pop((kind.API, key), None)
        final = copied(last)
        final["metadata"]["resourceVersion"] = str(self.version)
        self._record(Change(self.version, kind.API, old, None, final))
        return msgspec.convert(final, kind)

    def _record(self, change: Change) -> None:
        self._history.append(change)
        self._shout(change)


def failing(error: Callable[[], Exception], verbs: Iterator[str] | set[str]) -> Before:
    """For `before`: these verbs fail."""
    chosen = set(verbs)

    async def before(verb: str, kind: type[KubeObject], name: str) -> None:
        if verb in chosen:
            raise error()

    return before
