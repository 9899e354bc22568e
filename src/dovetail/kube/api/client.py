"""Client of the Kubernetes API: the port's calls as HTTP requests to a real API server.

`connect` makes one for the daemons. Answers are decoded straight into the few fields of
`podfit/objects.py`; lists come in pages, each decoded in one go. Lists ask for the newest state (no
resourceVersion), never for whatever a server has at hand (version 0): a server that lags behind
would show bound pods as waiting again. Servers answer both from their cache, after making sure that
it is up to date, so being right costs next to nothing.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import msgspec

from dovetail import __version__
from dovetail.kube.api.access import access, access_by_document
from dovetail.kube.api.credentials import Credentials
from dovetail.kube.api.http1 import ConnectionPool, ServerAddress
from dovetail.kube.api.limits import DEFAULT_LIMITS, ClientLimits
from dovetail.kube.api.port import ApiError, ApiGone, ApiNotFound, Body, Listing, WatchEvent
from dovetail.kube.api.session import ApiRequest, ApiSession, refusal
from dovetail.podfit.objects import KubeObject

T = TypeVar("T", bound=KubeObject)
S = TypeVar("S")

PAGE_OBJECTS = "500"
WATCH_SECONDS = (240, 360)
"""How long a watch may last, drawn anew for each so that they do not end together."""
SUBRESOURCES = {"binding": ("v1", "Binding"), "eviction": ("policy/v1", "Eviction")}
"""Those that take an object of another kind."""
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


class ListMeta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    next: str = msgspec.field(default="", name="continue")


class ListPage(msgspec.Struct, Generic[T]):
    metadata: ListMeta
    items: list[T] | None = None


class WatchLine(msgspec.Struct):
    """One line of a watch; what the object is depends on the type."""

    type: str
    object: msgspec.Raw


class Bookmark(msgspec.Struct):
    """A bookmark."""

    metadata: ListMeta


DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}


def connect(
    kubeconfig: str | None = None,
    *,
    agent: str = "dovetail",
    limits: ClientLimits = DEFAULT_LIMITS,
) -> KubeClient:
    """`agent` is the name that the server writes next to the fields we change."""
    return client_with(*access(kubeconfig, limits), agent, limits)


def connect_by_document(
    kubeconfig: bytes, *, agent: str = "dovetail", limits: ClientLimits = DEFAULT_LIMITS
) -> KubeClient:
    """With a kubeconfig that was sent to us; raises BadKubeconfig."""
    return client_with(*access_by_document(kubeconfig, limits), agent, limits)


def client_with(
    address: ServerAddress, credentials: Credentials, agent: str, limits: ClientLimits
) -> KubeClient:
    pool = ConnectionPool(address, limits)
    return KubeClient(ApiSession(pool, credentials, f"{agent}/{__version__}", limits))


class KubeClient:
    """`KubeApi` over HTTP."""

    def __init__(self, session: ApiSession) -> None:
        self._session = session

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Calls under way end by themselves."""
        self._session.close()

    async def list(
        self, kind: type[T], *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Listing[T]:
        where, at = selection(labels, fields), path(kind, namespace)
        items: list[T] = []
        following = {"limit": PAGE_OBJECTS}
        while True:
            request = ApiRequest("list", kind.API.kind, "GET", at, where | following)
            try:
                answer = await self._session.call(request)
            except ApiGone:
                # It took longer than the server keeps what the pages are of: all at once, then.
                if "continue" not in following:
                    raise
                items, following = [], {}
                continue
            page = decoded(ListPage[kind], answer)  # type: ignore[valid-type]
            items += page.items or ()
            if not page.metadata.next:
                return Listing(items, page.metadata.resource_version)
            following = {"limit": PAGE_OBJECTS, "continue": page.metadata.next}

    async def watch(
        self,
        kind: type[T],
        version: str,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
    ) -> AsyncGenerator[WatchEvent[T], None]:
        query = selection(labels, fields) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(random.randint(*WATCH_SECONDS)),
        }
        request = ApiRequest("watch", kind.API.kind, "GET", path(kind, namespace), query)
        async with aclosing(self._session.stream(request)) as stream:
            async for text in stream:
                line = decoded(WatchLine, text)
                if line.type == "ERROR":
                    raise refusal(0, line.object)
                if line.type == "BOOKMARK":
                    # An empty shell of the kind, in which even what is required may be null.
                    yield WatchEvent(
                        line.type, decoded(Bookmark, line.object).metadata.resource_version
                    )
                else:
                    one = decoded(kind, line.object)
                    yield WatchEvent(line.type, one.metadata.resource_version, one)

    async def get(self, kind: type[T], name: str, namespace: str = "") -> T:
        request = ApiRequest("get", kind.API.kind, "GET", path(kind, namespace, name))
        return decoded(kind, await self._session.call(request))

    async def create(
        self, kind: type[T], body: Body, *, namespace: str = "", sub: str = ""
    ) -> T | None:
        meta = body["metadata"]
        space = meta.get("namespace") or namespace
        where = path(kind, space, meta["name"], sub) if sub else path(kind, space)
        answer = await self._session.call(
            ApiRequest("create", kind.API.kind, "POST", where, body=encoded(kind, body, sub))
        )
        return None if sub else decoded(kind, answer)

    async def replace(self, kind: type[T], body: Body, *, sub: str = "") -> T:
        meta = body["metadata"]
        where = path(kind, meta.get("namespace", ""), meta["name"], sub)
        request = ApiRequest("replace", kind.API.kind, "PUT", where, body=encoded(kind, body))
        return decoded(kind, await self._session.call(request))

    async def apply(
        self, kind: type[T], body: Body, *, manager: str, sub: str = "", force: bool = True
    ) -> T:
        meta = body["metadata"]
        query = {"fieldManager": manager, "force": str(force).lower()}
        where = path(kind, meta.get("namespace", ""), meta["name"], sub)
        data = encoded(kind, body)
        request = ApiRequest("apply", kind.API.kind, "PATCH", where, query, data, APPLY)
        return decoded(kind, await self._session.call(request))

    async def merge(
        self, kind: type[T], name: str, body: Body, *, namespace: str = "", sub: str = ""
    ) -> T:
        where = path(kind, namespace, name, sub)
        data = msgspec.json.encode(body)
        request = ApiRequest("merge", kind.API.kind, "PATCH", where, {}, data, MERGE)
        return decoded(kind, await self._session.call(request))

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
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        options |= {"preconditions": {"uid": uid}} if uid else {}
        options |= {} if grace is None else {"gracePeriodSeconds": grace}
        options |= {"propagationPolicy": propagation} if propagation else {}
        where = path(kind, namespace, name)
        data = msgspec.json.encode(options)
        try:
            await self._session.call(
                ApiRequest("delete", kind.API.kind, "DELETE", where, body=data)
            )
        except ApiNotFound:
            return


def decoded(what: type[S], data: bytes | msgspec.Raw) -> S:
    """`data` as `what`. Raises ApiError where the server speaks otherwise than we expect."""
    decoder = DECODERS.get(what)
    if decoder is None:
        decoder = DECODERS[what] = msgspec.json.Decoder(what)
    try:
        read: S = decoder.decode(data)
    except msgspec.DecodeError as error:
        raise ApiError(0, "Unreadable", f"{what.__name__}: {error}") from error
    return read


def path(kind: type[KubeObject], namespace: str = "", name: str = "", sub: str = "") -> str:
    api = kind.API
    start = f"/apis/{api.group}/{api.version}" if api.group else f"/api/{api.version}"
    space = f"namespaces/{namespace}" if namespace and api.namespaced else ""
    return "/".join(part for part in (start, space, api.plural, name, sub) if part)


def selection(labels: str, fields: str) -> dict[str, str]:
    selectors = {"labelSelector": labels, "fieldSelector": fields}
    return {name: value for name, value in selectors.items() if value}


def encoded(kind: type[KubeObject], body: Body, sub: str = "") -> bytes:
    """`body` with its kind: the API reads nothing without it."""
    version, name = SUBRESOURCES.get(sub, (kind.API.api_version, kind.API.kind))
    return msgspec.json.encode({"apiVersion": version, "kind": name, **body})
