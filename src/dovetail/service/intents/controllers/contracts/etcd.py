"""`etcdserverpb`: the part of etcd's v3 API by which an AppContext is written, read and removed."""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from dovetail.wire.codec import Message
from dovetail.wire.rpc import Method


class KeyValue(Message):
    key: Annotated[bytes, 1] = b""
    value: Annotated[bytes, 5] = b""


class RangeRequest(Message):
    key: Annotated[bytes, 1] = b""
    range_end: Annotated[bytes, 2] = b""
    limit: Annotated[int, 3] = 0
    revision: Annotated[int, 4] = 0
    """0: as it is now."""
    keys_only: Annotated[bool, 8] = False


class ResponseHeader(Message):
    revision: Annotated[int, 3] = 0


class RangeResponse(Message):
    header: Annotated[ResponseHeader, 1] = field(default_factory=ResponseHeader)
    kvs: Annotated[tuple[KeyValue, ...], 2] = ()
    more: Annotated[bool, 3] = False


class PutRequest(Message):
    key: Annotated[bytes, 1] = b""
    value: Annotated[bytes, 2] = b""
    lease: Annotated[int, 3] = 0
    ignore_value: Annotated[bool, 5] = False
    """The value stays as it is; only the lease is another one."""


class DeleteRangeRequest(Message):
    key: Annotated[bytes, 1] = b""
    range_end: Annotated[bytes, 2] = b""


class DeleteRangeResponse(Message):
    deleted: Annotated[int, 2] = 0


class RequestOp(Message):
    """One of these."""

    request_put: Annotated[PutRequest | None, 2] = None


class TxnRequest(Message):
    success: Annotated[tuple[RequestOp, ...], 2] = ()


class TxnResponse(Message):
    succeeded: Annotated[bool, 2] = False


class LeaseGrantRequest(Message):
    ttl: Annotated[int, 1] = 0
    """In seconds."""


class LeaseGrantResponse(Message):
    id: Annotated[int, 2] = 0


STORE = "etcdserverpb.KV"
RANGE = Method(STORE, "Range", RangeRequest, RangeResponse)
DELETE_RANGE = Method(STORE, "DeleteRange", DeleteRangeRequest, DeleteRangeResponse)
TXN = Method(STORE, "Txn", TxnRequest, TxnResponse)
LEASE_GRANT = Method("etcdserverpb.Lease", "LeaseGrant", LeaseGrantRequest, LeaseGrantResponse)
