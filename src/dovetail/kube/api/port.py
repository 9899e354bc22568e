"""Port of the Kubernetes API: the eight calls that the rest of `kube` makes, and their errors.

`client.py` answers them over HTTP against a real API server; tests also have one in memory.

    DovetailError
    ├── ApiError            the server said no
    │   ├── ApiNotFound     404
    │   ├── ApiConflict     409
    │   └── ApiGone         410
    └── ApiUnreachable      no answer
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.podfit.objects import KubeObject

T = TypeVar("T", bound=KubeObject)
Body = Mapping[str, Any]
"""An object, or a part of one, as it goes out."""


class ApiError(DovetailError):
    """The API server said no; `code` is its HTTP status, `reason` its word for it."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class ApiNotFound(ApiError):
    """404."""


class ApiConflict(ApiError):
    """409: it exists already, or it is no longer what the writer had read."""


class ApiGone(ApiError):
    """410: the version to watch from is too old; list again."""


class ApiUnreachable(DovetailError):
    """No answer: connection refused, cut or timed out. What was sent may have been done."""


class Listing(msgspec.Struct, Generic[T]):
    items: list[T]
    resource_version: str


class WatchEvent(msgspec.Struct, Generic[T]):
    """A watch event. A `BOOKMARK` has no object: it only brings a newer version to watch from."""

    type: str
    version: str
    object: T | None = None


class KubeApi(Protocol):
    """A Kubernetes API server; calls raise ApiError or ApiUnreachable."""

    async def list(
        self, kind: type[T], *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Listing[T]:
        """All of them, page by page."""
        ...

    def watch(
        self,
        kind: type[T],
        version: str,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """Changes after `version`, until the server closes the watch.

        Raises ApiGone, ApiUnreachable.
        """
        ...

    async def get(self, kind: type[T], name: str, namespace: str = "") -> T: ...

    async def create(
        self, kind: type[T], body: Body, *, namespace: str = "", sub: str = ""
    ) -> T | None:
        """POST; `sub` names a subresource of the object in `body` (`binding`, `eviction`).

        The object as it is then; None of a subresource.
        """
        ...

    async def replace(self, kind: type[T], body: Body, *, sub: str = "") -> T:
        """PUT, refused with ApiConflict if `metadata.resourceVersion` is no longer the newest."""
        ...

    async def apply(
        self, kind: type[T], body: Body, *, manager: str, sub: str = "", force: bool = True
    ) -> T:
        """Server-side apply as `manager`."""
        ...

    async def merge(
        self, kind: type[T], name: str, body: Body, *, namespace: str = "", sub: str = ""
    ) -> T:
        """JSON merge patch."""
        ...

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
        """Gone already is as good; ApiConflict if it is there with another `uid`.

        `propagation` says what becomes of what it owns; without it, that is up to its kind.
        """
        ...
