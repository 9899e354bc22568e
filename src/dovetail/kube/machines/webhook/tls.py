"""TLS of the webhook: the certificate that new connections get, changed without a restart.

A replica serves with one context. What comes of the Secret, or of files that cert-manager has a
kubelet write, is loaded into it; connections that are open stay as they are.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path

import structlog
from cryptography import x509

from dovetail.kube.machines.metrics import CERTIFICATE_ENDS
from dovetail.kube.machines.webhook.certificates import LEAF, LEAF_KEY, Secret
from dovetail.kube.runtime.serving import BadListening

LOG = structlog.get_logger("dovetail.kube.machines.webhook")

FILE_SECONDS = 10.0
"""Between two looks at files: a kubelet takes a minute to bring what was written."""


class ServedCertificate:
    def __init__(self) -> None:
        self.context = server_context()
        self._loaded = asyncio.Event()
        self.pem = b""
        """Chain and key that are served."""

    @property
    def is_loaded(self) -> bool:
        return self._loaded.is_set()

    async def until_loaded(self) -> None:
        await self._loaded.wait()

    def load(self, chain: bytes, key: bytes) -> None:
        """Serve this from now on. Raises BadListening, and goes on with what it had."""
        pem = chain.rstrip() + b"\n" + key
        if pem == self.pem:
            return
        try:
            # A context that could not take a pair is left with a half of it: try another first.
            load_pair(server_context(), pem)
            load_pair(self.context, pem)
            end = x509.load_pem_x509_certificate(chain).not_valid_after_utc
        except (OSError, ValueError) as error:
            raise BadListening(f"certificate of the webhook: {error}") from error
        self.pem = pem
        CERTIFICATE_ENDS.set(end.timestamp())
        LOG.info("certificate served", until=str(end))
        self._loaded.set()

    def on_secret(self, _: Secret | None, new: Secret | None) -> None:
        """Told by an informer. What is deleted or unreadable changes nothing."""
        if new is None or LEAF not in new.data:
            return
        try:
            self.load(new.data[LEAF], new.data.get(LEAF_KEY, b""))
        except BadListening as error:
            LOG.warning("certificate not served", error=str(error))

    def load_files(self, cert: Path, key: Path) -> None:
        """Raises BadListening."""
        try:
            self.load(cert.read_bytes(), key.read_bytes())
        except OSError as error:
            raise BadListening(f"certificate of the webhook: {error}") from error

    async def follow_files(self, cert: Path, key: Path, seconds: float = FILE_SECONDS) -> None:
        """Until cancelled. Files that do not go together, since one of them is being replaced, are
        looked at again."""
        while True:
            await asyncio.sleep(seconds)
            try:
                self.load_files(cert, key)
            except BadListening as error:
                LOG.warning("certificate not served", error=str(error))


def server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def load_pair(context: ssl.SSLContext, pem: bytes) -> None:
    """Contexts take files only: this one is in memory, for a key belongs on no disk."""
    file = os.memfd_create("certificate")
    try:
        os.write(file, pem)
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
