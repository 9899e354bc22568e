"""An API server that says what a test wants it to say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dovetail.kube.api.client import KubeClient, connect
from dovetail.kube.api.limits import DEFAULT_LIMITS, ClientLimits


@dataclass
class ReceivedRequest:
    """A request as it came in."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Answer = bytes | None
"""What goes out, as it is; None closes the connection."""
Script = Callable[[ReceivedRequest], Answer]


@dataclass
class ScriptedServer:
    script: Script
    port: int = 0
    asked: list[ReceivedRequest] = field(default_factory=list)
    connections: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                asked = read(head)
                asked.body = await reader.readexactly(int(asked.headers["content-length"]))
                self.asked.append(asked)
                answer = self.script(asked)
                if answer is None:
                    break
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def read(head: bytes) -> ReceivedRequest:
    first, *rest = head.decode().strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = dict(line.lower().split(": ", 1) for line in rest)
    return ReceivedRequest(method, target, headers, b"")


def ok(body: Any, status: str = "200 OK", **headers: str) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\n{more}Content-Length: {len(data)}\r\n\r\n".encode() + data


def no(code: int, reason: str = "", message: str = "no", **headers: str) -> bytes:
    """A refusal as the API words it."""
    return ok({"code": code, "reason": reason, "message": message}, f"{code} No", **headers)


def streamed(*chunks: bytes, whole: bool = True) -> bytes:
    parts = [b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks]
    end = b"0\r\n\r\n" if whole else b""
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(parts) + end


@asynccontextmanager
async def client_of(
    directory: Path,
    script: Script,
    user: Mapping[str, Any] | None = None,
    limits: ClientLimits = DEFAULT_LIMITS,
) -> AsyncIterator[tuple[KubeClient, ScriptedServer]]:
    """A client of a server that follows `script`."""
    server = ScriptedServer(script)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    file = directory / "kubeconfig"
    file.write_text(json.dumps(kubeconfig(f"http://127.0.0.1:{server.port}/base/", user or {})))
    try:
        async with connect(str(file), agent="tester", limits=limits) as client:
            yield client, server
    finally:
        listening.close()
        for writer in server.connections:
            writer.close()


def kubeconfig(url: str, user: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": dict(user)}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
