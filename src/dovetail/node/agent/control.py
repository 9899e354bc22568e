"""The control socket: what the manager knows, for `dovetail agent` at the node's command line.

gRPC with bodies of JSON: a question is an object, and so is an answer. Nothing can be changed here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import grpc
import grpc.aio
import msgspec
import orjson
import structlog

from dovetail.node.common.ports import ManagerPort
from dovetail.wire.rpc import Refused

SERVICE = "dovetail.agent.v1.Agent"
LARGEST_QUESTION_BYTES = 4096

LOG = structlog.get_logger("dovetail.node.agent")

Context = grpc.aio.ServicerContext[bytes, bytes]


class ExplainQuestion(msgspec.Struct, forbid_unknown_fields=True):
    pod: str


class NoQuestion(msgspec.Struct, forbid_unknown_fields=True):
    pass


class ControlSocket:
    def __init__(
        self,
        manager: ManagerPort,
        device_plugins: Callable[[], Sequence[msgspec.Struct]] = tuple,
    ) -> None:
        """`device_plugins`: the status of each."""
        self._manager, self._device_plugins = manager, device_plugins

    def handler(self) -> grpc.GenericRpcHandler:
        methods: Mapping[str, Callable[[bytes], Any]] = {
            "State": self._state,
            "Plugins": self._plugins,
            "Explain": self._explain,
        }
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                name: grpc.unary_unary_rpc_method_handler(_answering(name, method))
                for name, method in methods.items()
            },
        )

    def _state(self, body: bytes) -> Any:
        question(body, NoQuestion)
        return self._manager.state()

    def _plugins(self, body: bytes) -> Any:
        question(body, NoQuestion)
        return {
            "plugins": msgspec.to_builtins(self._manager.plugin_statuses()),
            "device_plugins": msgspec.to_builtins(self._device_plugins()),
        }

    def _explain(self, body: bytes) -> Any:
        name = question(body, ExplainQuestion).pod
        found = self._manager.explanation(name)
        if found is None:
            words = (
                f"nothing is known of a pod {name!r}: it did not come by since the agent started, "
                "and holds nothing"
            )
            raise Refused(grpc.StatusCode.NOT_FOUND, words)
        return found


Q = TypeVar("Q")


def question(body: bytes, kind: type[Q]) -> Q:
    """Raises Refused."""
    if len(body) > LARGEST_QUESTION_BYTES:
        words = f"a question has {LARGEST_QUESTION_BYTES} bytes at most"
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, words)
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(grpc.StatusCode.INVALID_ARGUMENT, f"no question: {error}") from None


def _answering(
    name: str, method: Callable[[bytes], Any]
) -> Callable[[bytes, Context], Awaitable[bytes]]:
    async def answer(body: bytes, context: Context) -> bytes:
        try:
            return orjson.dumps(method(body), option=orjson.OPT_NON_STR_KEYS)
        except Refused as error:
            await context.abort(error.code, error.words)
        except Exception as error:
            LOG.exception("failed", method=name)
            await context.abort(grpc.StatusCode.INTERNAL, f"{name} failed: {error!r}")

    return answer
