"""EMCO's side, written on its own: etcd, its contracts, and controllers that act on an AppContext.

Keys and messages are written down here once more, from what EMCO's controllers do; nothing of
Dovetail is used. `Context` does what EMCO's library of that name does for them.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import grpc.aio

from tests.service.intents.controllers.protos import Handler, messages, server
from tests.support.kube import assets
from tests.support.processes import Process, reserved_port

Message = Any

CONTRACTS = messages("""
message ResourceRequest { string appContext = 1; }
message ResourceResponse { string appContext = 1; bool status = 2; string message = 3; }
message ContextUpdateRequest {
  string app_context = 1; string intent_name = 2; string update_from_appContext = 3;
}
message ContextUpdateResponse {
  bool app_context_updated = 1; string app_context_update_message = 2;
}
message TerminateRequest { string app_context = 1; }
message TerminateResponse {
  bool app_context_terminated = 1; string app_context_terminated_message = 2;
}
enum EventType { INSTANTIATE = 0; TERMINATE = 1; UPDATE = 2; }
message PostEventRequest { string app_context = 1; EventType event_type = 2; }
message PostEventResponse { bool success = 1; string post_event_message = 2; }
enum ClmControllerEventType { CLUSTER_CREATED = 0; CLUSTER_UPDATED = 1; CLUSTER_DELETED = 2; }
message ClmControllerEventRequest {
  string providerName = 1; string clusterName = 2; ClmControllerEventType event = 3;
}
message ClmControllerEventResponse {
  string providerName = 1; string clusterName = 2; bool status = 3; string message = 4;
}
""")

ETCD = messages("""
message KeyValue {
  bytes key = 1; int64 create_revision = 2; int64 mod_revision = 3; int64 version = 4;
  bytes value = 5; int64 lease = 6;
}
message RangeRequest { bytes key = 1; bytes range_end = 2; }
message RangeResponse { repeated KeyValue kvs = 2; bool more = 3; int64 count = 4; }
message PutRequest { bytes key = 1; bytes value = 2; }
message DeleteRangeRequest { bytes key = 1; bytes range_end = 2; }
""")


@contextmanager
def etcd(directory: Path) -> Iterator[int]:
    """A real one; its port."""
    program = assets.find("etcd")
    assert program
    with ExitStack() as stack:
        port, peer_port = (stack.enter_context(reserved_port()) for _ in range(2))
        url, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
        process = Process(
            [
                *(program, "--data-dir", directory / "etcd", "--unsafe-no-fsync"),
                *("--listen-client-urls", url, "--advertise-client-urls", url),
                *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
                *("--initial-cluster", f"default={peer}", "--log-level=info"),
            ],
            directory / "etcd.log",
        )
        stack.enter_context(process)
        process.await_ready(lambda: "ready to serve client requests" in process.output)
        yield port


class Store:
    """etcd, as a client of another kind sees it."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def put(self, key: str, value: object) -> None:
        data = json.dumps(value).encode()
        await self._call("Put", ETCD["PutRequest"](key=key.encode(), value=data), bytes)

    async def get(self, key: str) -> Any:
        (found,) = (await self._range(key.encode(), b"")).kvs
        return json.loads(found.value)

    async def all(self, prefix: str) -> dict[str, Any]:
        found = await self._range(prefix.encode(), prefix.encode() + b"\xff")
        return {each.key.decode(): json.loads(each.value) for each in found.kvs}

    async def leases(self, prefix: str) -> set[int]:
        found = await self._range(prefix.encode(), prefix.encode() + b"\xff")
        return {each.lease for each in found.kvs}

    async def delete_all(self, prefix: str) -> None:
        start = prefix.encode()
        question = ETCD["DeleteRangeRequest"](key=start, range_end=start + b"\xff")
        await self._call("DeleteRange", question, bytes)

    async def _range(self, key: bytes, end: bytes) -> Message:
        question = ETCD["RangeRequest"](key=key, range_end=end)
        return await self._call("Range", question, ETCD["RangeResponse"].FromString)

    async def _call(self, method: str, question: Message, read: Any) -> Any:
        options = [("grpc.max_receive_message_length", -1)]
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self._port}", options) as channel:
            ask: Any = channel.unary_unary(f"/etcdserverpb.KV/{method}")
            return read(await ask(question.SerializeToString()))


class Context:
    """An AppContext, as controllers of EMCO load it."""

    def __init__(self, store: Store, identifier: str) -> None:
        self.store, self.root = store, f"/context/{identifier}/"
        self.identifier = identifier

    async def load(self) -> dict[str, Any]:
        """Its meta data."""
        assert await self.store.get(self.root) == self.identifier
        found: dict[str, Any] = await self.store.get(f"{self.root}meta/")
        return found

    async def apps(self) -> list[str]:
        order = json.loads(await self.store.get(f"{self.root}app/instruction/order/"))
        found: list[str] = order["apporder"]
        return found

    async def clusters(self, app: str) -> list[str]:
        prefix = f"{self.root}app/{app}/cluster/"
        below = [key.removeprefix(prefix).split("/") for key in await self.store.all(prefix)]
        return [each[0] for each in below if len(each) == 2 and each[1] == ""]

    async def group_map(self, app: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for cluster in await self.clusters(app):
            number = await self.store.get(f"{self.root}app/{app}/cluster/{cluster}/!@#metaGrp/")
            found.setdefault(number, []).append(cluster)
        return found

    async def delete_cluster(self, app: str, cluster: str) -> None:
        await self.store.delete_all(f"{self.root}app/{app}/cluster/{cluster}/")

    async def resource_order(self, app: str, cluster: str) -> list[str]:
        at = f"{self.root}app/{app}/cluster/{cluster}/resource/instruction/order/"
        found: list[str] = json.loads(await self.store.get(at))["resorder"]
        return found

    async def resource(self, app: str, cluster: str, name: str) -> str:
        found: str = await self.store.get(self._resource(app, cluster, name))
        return found

    async def put_resource(self, app: str, cluster: str, name: str, text: str) -> None:
        await self.store.put(self._resource(app, cluster, name), text)

    def _resource(self, app: str, cluster: str, name: str) -> str:
        return f"{self.root}app/{app}/cluster/{cluster}/resource/{name}/"


class PlacementController:
    """Filters clusters, as hpa-plc does: says yes or no, and acts on the AppContext."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.seen: list[Context] = []

    async def filter(self, context: Context) -> None:
        """Raise to say no."""

    async def answer(self, data: bytes) -> bytes:
        asked = CONTRACTS["ResourceRequest"].FromString(data)
        context = Context(self.store, asked.appContext)
        self.seen.append(context)
        said = CONTRACTS["ResourceResponse"](appContext=asked.appContext, status=True)
        try:
            await self.filter(context)
        except ValueError as error:
            said.status, said.message = False, str(error)
        written: bytes = said.SerializeToString()
        return written

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        async with server({"/PlacementController/FilterClusters": self.answer}) as port:
            yield port


class ActionController:
    """Edits objects, as hpa-ac does."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.calls: list[Message] = []

    async def update(self, context: Context, intent: str) -> None:
        """Raise to say no."""

    async def _update(self, data: bytes) -> bytes:
        asked = CONTRACTS["ContextUpdateRequest"].FromString(data)
        self.calls.append(asked)
        said = CONTRACTS["ContextUpdateResponse"](app_context_updated=True)
        try:
            await self.update(Context(self.store, asked.app_context), asked.intent_name)
        except ValueError as error:
            said.app_context_updated, said.app_context_update_message = False, str(error)
        written: bytes = said.SerializeToString()
        return written

    async def _terminate(self, data: bytes) -> bytes:
        self.calls.append(CONTRACTS["TerminateRequest"].FromString(data))
        said: bytes = CONTRACTS["TerminateResponse"](
            app_context_terminated=True
        ).SerializeToString()
        return said

    async def _event(self, data: bytes) -> bytes:
        self.calls.append(CONTRACTS["PostEventRequest"].FromString(data))
        said: bytes = CONTRACTS["PostEventResponse"](success=True).SerializeToString()
        return said

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        handlers: dict[str, Handler] = {
            "/contextupdate/UpdateAppContext": self._update,
            "/contextupdate/TerminateAppContext": self._terminate,
            "/contextupdate/PostEvent": self._event,
        }
        async with server(handlers) as port:
            yield port
