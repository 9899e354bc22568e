"""HTTP client of the commands: one connection, JSON in and out, errors that say what to do.

Built on the standard library alone: a command should be done before a larger client is imported.
"""

from __future__ import annotations

import functools
import http.client
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import IO, Any, TypeVar
from urllib.parse import quote, urlsplit

import click
import orjson

from dovetail import __version__
from dovetail.cli.support.exits import NoPermission, RequestRefused, ServerUnreachable

JSON = "application/json"
NDJSON = "application/x-ndjson"
MICROVERSION = "placement 1.39"
SECONDS = 60.0
PIECE = 256 * 2**10
WHO_ARE_YOU = (
    "Give a token with --token or DOVETAIL_TOKEN. A server with a token file takes those made by "
    "`dovetail token`; one started for trying things out (noauth2, as the demo) takes any: "
    "DOVETAIL_TOKEN=admin."
)

Body = bytes | IO[bytes] | Iterable[bytes]
Command = TypeVar("Command", bound=Callable[..., None])


class ServerClient:
    def __init__(
        self,
        url: str,
        token: str | None = None,
        timeout: float = SECONDS,
        ca_file: str | None = None,
    ) -> None:
        if token is not None and not (token.isascii() and token.isprintable()):
            raise click.UsageError("--token: has characters that no token has")
        self._url, self._token = url.rstrip("/"), token
        self._prefix = urlsplit(self._url).path
        self._connection = connection(self._url, timeout, ca_file)

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def call(self, method: str, path: str, document: Any = None) -> Any:
        """The JSON the server answers with; None if it answers with nothing."""
        body = None if document is None else orjson.dumps(document)
        text = b"".join(self.stream(method, path, body))
        return json_of(text) if text else None

    def stream(
        self,
        method: str,
        path: str,
        body: Body | None = None,
        content_type: str = JSON,
        length: int | None = None,
    ) -> Iterator[bytes]:
        """The answer in pieces, as they arrive; an error if it does not come to its end."""
        headers = self._headers(body, content_type, length)
        try:
            response = self._exchange(method, self._prefix + path, body, headers)
            with response:
                if response.status >= 300:
                    raise complaint(response.status, response.read())
                while piece := response.read(PIECE):
                    yield piece
                if response.length:
                    raise http.client.IncompleteRead(b"", response.length)
        except (OSError, http.client.HTTPException) as error:
            # What is left of this exchange must not be taken for the next answer.
            self._connection.close()
            raise ServerUnreachable(f"{self._url}: {trouble(error)}") from error

    def close(self) -> None:
        self._connection.close()

    def _headers(
        self, body: Body | None, content_type: str, length: int | None
    ) -> Mapping[str, str]:
        headers = {
            "accept": "*/*",
            "openstack-api-version": MICROVERSION,
            "user-agent": f"dovetail/{__version__}",
        }
        if self._token is not None:
            headers["x-auth-token"] = self._token
        if body is not None:
            headers["content-type"] = content_type
        if length is not None:
            headers["content-length"] = str(length)
        return headers

    def _exchange(
        self, method: str, path: str, body: Body | None, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        try:
            self._connection.request(method, path, body, headers)
        except (BrokenPipeError, ConnectionResetError):
            # A server that refuses a long body in the middle has its reason ready to be read.
            if self._connection.sock is None or body is None:
                raise
        return self._connection.getresponse()


def connection(url: str, timeout: float, ca_file: str | None) -> http.client.HTTPConnection:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise click.UsageError(f"--server {url}: {error}") from error
    if parts.scheme not in {"http", "https"} or not host:
        raise click.UsageError(f"--server {url}: should read http://HOST:PORT or https://HOST:PORT")
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=timeout)
    import ssl

    try:
        trusted = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise click.UsageError(f"--ca-file {ca_file}: {error}") from error
    return http.client.HTTPSConnection(host, port, timeout=timeout, context=trusted)


def json_of(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ServerUnreachable(f"the server's answer is no JSON: {error}") from error


class ServerRefusal(RequestRefused):
    """A refusal with all that the server said."""

    def __init__(self, status: int, document: Mapping[str, Any], message: str) -> None:
        super().__init__(message)
        self.status, self.document = status, document


def complaint(status: int, body: bytes) -> click.ClickException:
    """The error that an answer other than success stands for."""
    document = problem(body)
    text = " ".join(essence(str(document.get("detail") or "")).split())
    if status == 401:
        return NoPermission(f"The server does not know you. {WHO_ARE_YOU}")
    if status == 403:
        return NoPermission(text or "The server does not allow this.")
    if status >= 500 or status < 400:
        return ServerUnreachable(f"The server failed ({status}). {text}".strip())
    return ServerRefusal(status, document, text or f"The server refused ({status}).")


def problem(body: bytes) -> Mapping[str, Any]:
    """Problem details, or the first error of Placement's list, or plain words."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        text = body.decode("utf-8", "replace")
        # A page is what something else than Dovetail answers: nothing to read in a terminal.
        return {} if text.lstrip().startswith("<") else {"detail": text}
    match document:
        case {"errors": [dict() as first, *_]}:
            return first
        case dict():
            return document
        case _:
            return {}


def essence(detail: str) -> str:
    """What is particular to this error: not the general sentence, nor the schema it came from."""
    general, _, particular = detail.partition("\n\n")
    return particular.strip().partition(" Failed validating ")[0] or general


def trouble(error: OSError | http.client.HTTPException) -> str:
    """What went wrong on the way, and what to look at first."""
    what = (error.strerror if isinstance(error, OSError) else None) or str(error)
    if isinstance(error, ConnectionRefusedError):
        return f"{what}. Is a server running there? --server or DOVETAIL_SERVER names another."
    return what or type(error).__name__


def segment(text: str) -> str:
    """A name or UUID as a part of a path."""
    return quote(text, safe="")


def talks_to_server(seconds: float = SECONDS) -> Callable[[Command], Command]:
    """Gives a command the options that say which server, and a `server` to talk to."""

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def run(
            *, server: str, token: str | None, timeout: float, ca_file: str | None, **rest: Any
        ) -> None:
            with closing(ServerClient(server, token, timeout, ca_file)) as opened:
                command(server=opened, **rest)

        wrapped: Any = run
        for option in reversed(server_options(seconds)):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[no-any-return]

    return decorate


def server_options(seconds: float) -> list[Callable[[Any], Any]]:
    return [
        click.option(
            "--server",
            metavar="URL",
            envvar="DOVETAIL_SERVER",
            default="http://127.0.0.1:8778",
            show_default=True,
            show_envvar=True,
            help="The server to ask.",
        ),
        click.option(
            "--token",
            envvar="DOVETAIL_TOKEN",
            show_envvar=True,
            help="Who you are. Others see command lines: prefer the environment.",
        ),
        click.option(
            "--timeout",
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            default=seconds,
            show_default=True,
            help="How long to wait for an answer.",
        ),
        click.option(
            "--ca-file",
            type=click.Path(exists=True, dir_okay=False),
            help="Certificates (PEM) to trust instead of the system's.",
        ),
    ]
