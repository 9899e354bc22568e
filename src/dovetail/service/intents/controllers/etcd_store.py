"""etcd's key-value store as far as an AppContext needs it: write, list, read and remove prefixes.

`app_context.py` keeps EMCO's AppContexts in it. Writes go in transactions of a size that any etcd
takes; readings go page by page, all as of the revision of the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from dovetail.service.intents.controllers.contracts.etcd import (
    DELETE_RANGE,
    LEASE_GRANT,
    RANGE,
    TXN,
    DeleteRangeRequest,
    KeyValue,
    LeaseGrantRequest,
    PutRequest,
    RangeRequest,
    RequestOp,
    TxnRequest,
)
from dovetail.wire.client import GrpcEndpoint, ask, connected
from dovetail.wire.codec import Message
from dovetail.wire.rpc import Method

A = TypeVar("A", bound=Message)

MOST_WRITES = 100
"""In one transaction; etcd takes 128 unless it is told otherwise."""
MOST_WRITTEN_BYTES = 2**20
"""Likewise, of one and a half."""
KEYS_A_PAGE, VALUES_A_PAGE = 5_000, 32
LARGEST_ANSWER_BYTES = 64 * 2**20
"""A page of the largest values that etcd keeps."""


class EtcdStore:
    """A connection, and by when all that is asked on it has to be answered."""

    def __init__(self, channel: Any, seconds: float) -> None:
        self._channel = channel
        self._end = asyncio.get_running_loop().time() + seconds

    async def grant(self, seconds: int) -> int:
        """A lease: what is written with it, goes when it ends."""
        return (await self._ask(LEASE_GRANT, LeaseGrantRequest(ttl=seconds))).id

    async def write(self, entries: Iterable[tuple[str, bytes]], lease: int = 0) -> None:
        """Not all at once: nobody may look before this is over."""
        await self._put(PutRequest(key.encode(), value, lease) for key, value in entries)

    async def keep(self, prefix: str) -> None:
        """Take what is below the prefix from its lease: it stays until it is deleted."""
        keys = await self.keys(prefix)
        await self._put(PutRequest(key.encode(), ignore_value=True) for key in keys)

    async def _put(self, puts: Iterable[PutRequest]) -> None:
        batch: list[RequestOp] = []
        size = 0
        for put in puts:
            if batch and (len(batch) == MOST_WRITES or size + len(put.value) > MOST_WRITTEN_BYTES):
                await self._ask(TXN, TxnRequest(success=tuple(batch)))
                batch, size = [], 0
            batch.append(RequestOp(request_put=put))
            size += len(put.key) + len(put.value)
        if batch:
            await self._ask(TXN, TxnRequest(success=tuple(batch)))

    async def keys(self, prefix: str) -> list[str]:
        """Below the prefix, in their order."""
        found = self._pages(prefix, keys_only=True)
        return [each.key.decode(errors="replace") async for each in found]

    async def values(self, prefix: str) -> dict[str, bytes]:
        """By key, in their order."""
        found = self._pages(prefix, keys_only=False)
        return {each.key.decode(errors="replace"): each.value async for each in found}

    async def delete(self, prefix: str) -> None:
        start = prefix.encode()
        await self._ask(DELETE_RANGE, DeleteRangeRequest(key=start, range_end=range_end(start)))

    async def _pages(self, prefix: str, *, keys_only: bool) -> AsyncIterator[KeyValue]:
        start, end, revision = prefix.encode(), range_end(prefix.encode()), 0
        more = True
        while more:
            page = await self._ask(
                RANGE,
                RangeRequest(
                    key=start,
                    range_end=end,
                    limit=KEYS_A_PAGE if keys_only else VALUES_A_PAGE,
                    revision=revision,
                    keys_only=keys_only,
                ),
            )
            for each in page.kvs:
                yield each
            revision = page.header.revision
            more = page.more and bool(page.kvs)
            if more:
                # The next key that there can be.
                start = page.kvs[-1].key + b"\0"

    async def _ask(self, method: Method[Any, A], question: Message) -> A:
        left = self._end - asyncio.get_running_loop().time()
        return await ask(self._channel, method, question, max(left, 0.001))


@asynccontextmanager
async def etcd_store(endpoint: GrpcEndpoint, seconds: float) -> AsyncIterator[EtcdStore]:
    """Its calls raise EndpointError."""
    async with connected(endpoint, LARGEST_ANSWER_BYTES) as channel:
        yield EtcdStore(channel, seconds)


def range_end(prefix: bytes) -> bytes:
    """The first key after all that begin with the prefix, which ends with a slash."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
