"""A pod source: the kubelet of this node, whose /pods lists pods before it starts them."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from pathlib import Path

import httpx2
import orjson
import structlog

from dovetail.aio.single_flight import NextRun
from dovetail.config.listening import is_loopback
from dovetail.core.errors import DovetailError
from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.common.reasons import POD_UNKNOWN
from dovetail.node.sources.known_pods import KnownPods

LOG = structlog.get_logger("dovetail.node.sources")

LARGEST_LIST_BYTES = 64 * 2**20
TRIES, RETRY_SECONDS = 3, 0.2
"""Looks for a pod that is not listed, and seconds between them."""


class BadSource(DovetailError):
    """An address that must not be asked, or nobody to trust there."""


class Unanswered(DovetailError):
    """The kubelet does not tell."""


class KubeletPods:
    """A `ports.PodSource`. Every question is answered by a list that is fetched after it."""

    def __init__(
        self,
        url: str,
        *,
        token_file: Path | None = None,
        ca_file: Path | None = None,
        timeout: float = 5.0,
        retry_seconds: float = RETRY_SECONDS,
        largest_bytes: int = LARGEST_LIST_BYTES,
    ) -> None:
        """`url` as https://127.0.0.1:10250. Without TLS only on this machine: pods have secrets."""
        self._url = checked_url(url)
        self._token_file, self._timeout = token_file, timeout
        self._retry_seconds, self._largest_bytes = retry_seconds, largest_bytes
        self._http = httpx2.AsyncClient(
            verify=tls_context(ca_file),
            timeout=timeout,
            follow_redirects=False,
            # A proxy of the environment has no business between a node and itself.
            trust_env=False,
        )
        self._fetching = NextRun(self._fetch)

    async def pod(self, sandbox: Sandbox) -> Pod | None:
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(self._retry_seconds)
            try:
                known = await self._fetching.join()
            except Unanswered as error:
                raise AdmissionRejected(POD_UNKNOWN, str(error), later=True) from error
            if pod := known.pod(sandbox):
                return pod
        return None

    async def active(self) -> Sequence[Pod] | None:
        try:
            return (await self._fetching.join()).active()
        except Unanswered as error:
            LOG.warning("pods not known", why=str(error))
            return None

    async def close(self) -> None:
        await self._http.aclose()

    async def _fetch(self) -> KnownPods:
        url = f"{self._url}/pods"
        try:
            # The client's own timeout begins anew with every piece that comes.
            async with (
                asyncio.timeout(self._timeout),
                self._http.stream("GET", url, headers=self._headers()) as response,
            ):
                content = await _content(response, self._largest_bytes)
        except (httpx2.HTTPError, TimeoutError, OSError) as error:
            why = str(error) or type(error).__name__
            raise Unanswered(f"the kubelet at {self._url} cannot be asked: {why}") from error
        if response.status_code != 200:
            raise Unanswered(f"the kubelet answers {url} with {response.status_code}")
        return KnownPods(
            (f"pod {at} of {url}", each) for at, each in enumerate(_items(url, content))
        )

    def _headers(self) -> dict[str, str]:
        """The token is read each time: it is replaced before it runs out."""
        if self._token_file is None:
            return {}
        try:
            token = self._token_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeError) as error:
            raise Unanswered(f"the kubelet's token {self._token_file}: {error}") from error
        return {"Authorization": f"Bearer {token}"}


async def _content(response: httpx2.Response, largest: int) -> bytes:
    content = bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > largest:
            raise Unanswered(f"the kubelet answers with more than {largest} bytes")
    return bytes(content)


def _items(url: str, content: bytes) -> list[object]:
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise Unanswered(f"{url} is no JSON: {error}") from None
    items = document.get("items", []) if isinstance(document, dict) else None
    if items is None and isinstance(document, dict):
        # A list without members is written as null.
        return []
    if not isinstance(items, list):
        raise Unanswered(f"{url} is no list of pods")
    return items


def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """That authority, or those of the machine; raises BadSource."""
    try:
        return ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
    except OSError as error:
        raise BadSource(f"{ca_file}: no certificate of an authority: {error.strerror}") from error


def checked_url(url: str) -> str:
    """The address without a slash at its end; raises BadSource."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise BadSource(f"{url!r} is no address: {error}") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise BadSource(f"{url!r} is no address such as https://127.0.0.1:10250")
    if parsed.scheme == "http" and not is_loopback(parsed.host):
        raise BadSource(f"{url!r}: without TLS the kubelet is asked at a loopback address only")
    return url.rstrip("/")
