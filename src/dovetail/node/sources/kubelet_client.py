"""The kubelet's HTTP API, as far as `KubeletPods` asks it: whom to trust there, and who asks.

A kubelet makes its own certificate by default, which names the node and no address; so one that is
asked at a loopback address may answer by either name. Files are read again when they changed:
tokens and certificates are replaced before they run out, and a new kubelet makes its own only after
the agent, which it needs to start, is there.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from pathlib import Path

import httpx2
import structlog

from dovetail.config.listening import is_loopback
from dovetail.core.errors import DovetailError

LOG = structlog.get_logger("dovetail.node.sources")

LARGEST_LIST_BYTES = 64 * 2**20

WRONG_NAME = (62, 64)
"""OpenSSL's verdicts: the certificate is trusted, and names another host or address."""


class BadSource(DovetailError):
    """An address that must not be asked, or nobody to trust there."""


class Unanswered(DovetailError):
    """The kubelet does not tell."""


class KubeletClient:
    def __init__(
        self,
        url: str,
        *,
        token_file: Path | None = None,
        ca_file: Path | None = None,
        certificate: Path | None = None,
        key: Path | None = None,
        server_names: Sequence[str] = (),
        timeout: float = 5.0,
        largest_bytes: int = LARGEST_LIST_BYTES,
    ) -> None:
        """`url` as https://127.0.0.1:10250. Without TLS only on this machine: pods have secrets.

        `certificate`: of the one who asks, with its `key` unless that is in the same file.
        `server_names`: of which the kubelet's certificate has to have one; by default the address.
        Raises BadSource, but for files that are not there yet.
        """
        self.url = checked_url(url)
        self._token_file, self._timeout, self._largest_bytes = token_file, timeout, largest_bytes
        self._ca_file, self._certificate, self._key = ca_file, certificate, key
        self._names = [*server_names] or [httpx2.URL(self.url).host]
        self._stamp = self._stamped()
        self._http = None if self._missing() else self._opened(self._tls_context())

    async def get(self, path: str) -> bytes:
        """Raises Unanswered."""
        await self._follow_files()
        if self._http is None:
            missing = " and ".join(map(str, self._missing()))
            raise Unanswered(f"the kubelet at {self.url} cannot be asked: {missing} is not there")
        url = f"{self.url}{path}"
        try:
            # The client's own timeout begins anew with every piece that comes.
            async with asyncio.timeout(self._timeout):
                status, content = await self._by_any_name(self._http, url)
        except (httpx2.HTTPError, TimeoutError, OSError) as error:
            why = str(error) or type(error).__name__
            raise Unanswered(f"the kubelet at {self.url} cannot be asked: {why}") from error
        if status != 200:
            raise Unanswered(f"the kubelet answers {url} with {status}")
        return content

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()

    async def _by_any_name(self, http: httpx2.AsyncClient, url: str) -> tuple[int, bytes]:
        """Those names first that were right before."""
        for name in [*self._names]:
            try:
                return await self._asked(http, url, name)
            except httpx2.ConnectError as error:
                if not _names_another(error):
                    raise
                self._names.append(self._names.pop(0))
                last = error
        names = " nor ".join(self._names)
        raise Unanswered(
            f"the kubelet at {self.url} shows a certificate that names neither {names}: {last}. "
            "pods.server_name is the name to expect"
        ) from last

    async def _asked(self, http: httpx2.AsyncClient, url: str, name: str) -> tuple[int, bytes]:
        async with http.stream(
            "GET", url, headers=self._headers(), extensions={"sni_hostname": name}
        ) as response:
            return response.status_code, await _content(response, self._largest_bytes)

    def _headers(self) -> dict[str, str]:
        """The token is read each time: it is replaced before it runs out."""
        if self._token_file is None:
            return {}
        try:
            token = self._token_file.read_text(encoding="ascii").strip()
        except (OSError, UnicodeError) as error:
            raise Unanswered(f"the kubelet's token {self._token_file}: {error}") from error
        return {"Authorization": f"Bearer {token}"}

    def _opened(self, context: ssl.SSLContext) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            verify=context,
            timeout=self._timeout,
            follow_redirects=False,
            # A proxy of the environment has no business between a node and itself.
            trust_env=False,
        )

    async def _follow_files(self) -> None:
        """Certificates that were replaced; half of a file is no reason to give up the old ones."""
        stamp = self._stamped()
        if stamp == self._stamp or self._missing():
            return
        try:
            context = self._tls_context()
        except BadSource as error:
            LOG.warning("certificates not replaced", why=str(error))
            return
        self._stamp, before = stamp, self._http
        self._http = self._opened(context)
        if before is not None:
            await before.aclose()

    def _tls_context(self) -> ssl.SSLContext:
        return tls_context(self._ca_file, self._certificate, self._key)

    def _stamped(self) -> tuple[tuple[int, ...] | None, ...]:
        return tuple(_stamp(each) for each in (self._ca_file, self._certificate, self._key))

    def _missing(self) -> list[Path]:
        files = (self._ca_file, self._certificate, self._key)
        return [each for each in files if each is not None and not each.exists()]


def tls_context(
    ca_file: Path | None, certificate: Path | None = None, key: Path | None = None
) -> ssl.SSLContext:
    """That authority, or those of the machine; raises BadSource."""
    try:
        context = ssl.create_default_context(cafile=str(ca_file) if ca_file else None)
    except OSError as error:
        raise BadSource(f"{ca_file}: no certificate of an authority: {error.strerror}") from error
    if certificate is not None:
        try:
            context.load_cert_chain(certificate, key)
        except OSError as error:
            named = certificate if key is None else f"{certificate} and {key}"
            why = error.strerror or error
            raise BadSource(f"{named}: no certificate with its key: {why}") from error
    return context


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


def names_at(url: str, node: str) -> tuple[str, ...]:
    """By which a kubelet at this address may go: on this machine by the node's name, too."""
    host = httpx2.URL(checked_url(url)).host
    return (host, node) if is_loopback(host) and node else (host,)


async def _content(response: httpx2.Response, largest: int) -> bytes:
    content = bytearray()
    async for part in response.aiter_bytes():
        content += part
        if len(content) > largest:
            raise Unanswered(f"the kubelet answers with more than {largest} bytes")
    return bytes(content)


def _names_another(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_code in WRONG_NAME
        error = error.__cause__ or error.__context__
    return False


def _stamp(path: Path | None) -> tuple[int, ...] | None:
    if path is None:
        return None
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
