"""A runtime in memory that creates containers at once: `python -m ... SOCKET`."""

import asyncio
import signal
import sys
from typing import Any

import grpc
import grpc.aio

from dovetail.node.wire import cri
from dovetail.wire.codec import encode

CREATE = f"/{cri.SERVICE}/CreateContainer"
CREATED = encode(cri.CreateContainerResponse(container_id="0" * 64))


class Answering(grpc.GenericRpcHandler):
    def service(self, call: grpc.HandlerCallDetails) -> Any:
        async def answer(_: bytes, __: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
            return CREATED

        return grpc.unary_unary_rpc_method_handler(answer) if call.method == CREATE else None


async def main(socket: str) -> None:
    server = grpc.aio.server(handlers=[Answering()])
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await server.stop(0)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
