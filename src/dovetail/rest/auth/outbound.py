"""HTTP client for Keystone and issuers: bounded in time and size, follows no redirects."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any

import httpx2
import orjson

from dovetail.rest.auth.identity import AuthServiceUnreachable, CannotTell

MOST_BYTES = 2**20
CONNECTIONS = 20


class OutboundAnswer:
    """Status, headers and JSON object of an answer."""

    def __init__(self, status: int, headers: Mapping[str, str], document: dict[str, Any]) -> None:
        self.status, self.headers, self.document = status, headers, document


class Outbound:
    """Speaks to one service, which messages call by its name."""

    def __init__(self, name: str, ca_file: str | None, timeout_seconds: float) -> None:
        self._name, self._seconds = name, timeout_seconds
        self._http = httpx2.AsyncClient(
            verify=ssl.create_default_context(cafile=ca_file),
            timeout=timeout_seconds,
            limits=httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=5),
            follow_redirects=False,
            # What is sent without TLS shall not pass through a proxy of the environment as well.
            mounts={"http://": None},
        )

    async def ask(
        self,
        method: str,
        url: str,
        *,
        body: Any = None,
        form: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> OutboundAnswer:
        """Raises AuthServiceUnreachable if there is no answer, CannotTell if it is too long."""
        try:
            # The client's own timeout begins anew with every piece that comes.
            async with (
                asyncio.timeout(self._seconds),
                self._http.stream(method, url, json=body, data=form, headers=headers) as response,
            ):
                content = await self._content(response)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            raise AuthServiceUnreachable(
                f"{self._name} cannot be reached: {type(error).__name__}"
            ) from error
        return OutboundAnswer(response.status_code, response.headers, json_object(content))

    async def get(self, url: str) -> dict[str, Any]:
        answer = await self.ask("GET", url)
        if answer.status != 200:
            raise CannotTell(f"{self._name} answered {url} with {answer.status}")
        return answer.document

    async def close(self) -> None:
        await self._http.aclose()

    async def _content(self, response: httpx2.Response) -> bytes:
        content = b""
        async for part in response.aiter_bytes():
            content += part
            if len(content) > MOST_BYTES:
                raise CannotTell(f"{self._name} answers with more than {MOST_BYTES} bytes")
        return content


def json_object(content: bytes) -> dict[str, Any]:
    """The object; nothing if it is something else: who needs a member finds it missing."""
    try:
        document = orjson.loads(content)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}
