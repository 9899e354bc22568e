"""A pod source: the kubelet of this node, whose /pods lists pods before it starts them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import orjson
import structlog

from dovetail.aio.single_flight import NextRun
from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.common.reasons import POD_UNKNOWN
from dovetail.node.sources.known_pods import KnownPods
from dovetail.node.sources.kubelet_client import KubeletClient, Unanswered

LOG = structlog.get_logger("dovetail.node.sources")

TRIES, RETRY_SECONDS = 3, 0.2
"""Looks for a pod that is not listed, and seconds between them."""


class KubeletAway(AdmissionRejected):
    """The kubelet cannot be asked at the moment, which says nothing about the pod."""

    def __init__(self, words: str) -> None:
        super().__init__(POD_UNKNOWN, words, later=True)


class KubeletPods:
    """A `ports.PodSource`. Every question is answered by a list that is fetched after it."""

    def __init__(self, client: KubeletClient, *, retry_seconds: float = RETRY_SECONDS) -> None:
        self._client, self._retry_seconds = client, retry_seconds
        self._fetching = NextRun(self._fetch)

    async def pod(self, sandbox: Sandbox) -> Pod | None:
        """Raises KubeletAway."""
        for attempt in range(TRIES):
            if attempt:
                await asyncio.sleep(self._retry_seconds)
            try:
                known = await self._fetching.join()
            except Unanswered as error:
                raise KubeletAway(str(error)) from error
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
        await self._client.close()

    async def _fetch(self) -> KnownPods:
        url, content = f"{self._client.url}/pods", await self._client.get("/pods")
        return KnownPods(
            (f"pod {at} of {url}", each) for at, each in enumerate(_items(url, content))
        )


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
