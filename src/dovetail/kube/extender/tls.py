"""TLS of the extender, both ways; its files are read again when they change. The daemon serves it.

A context that listens cannot forget whom it trusted, so each change makes a new one, and new
connections are handed to the newest. Connections that are open stay as they are.
"""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Self

import structlog
from cryptography import x509

from dovetail.kube.runtime.serving import BadListening, tls_of
from dovetail.kube.scheduler.settings import ExtenderSettings
from dovetail.telemetry.metrics import METRICS

LOG = structlog.get_logger("dovetail.kube.extender")

LOOK_SECONDS = 10.0
"""Between two looks: a kubelet takes a minute to bring what was written to a Secret."""
CERTIFICATE_ENDS = METRICS.gauge(
    "kube_extender_certificate_end_seconds",
    "Until when the extender's certificate is valid, in Unix seconds.",
)


class ExtenderTls:
    def __init__(self, cert: str | None, key: str | None, client_ca: str | None) -> None:
        """Raises BadListening."""
        self._paths = (cert, key, client_ca)
        self._read = self._contents()
        self._newest = self._loaded()
        # What the listening context holds itself is never shown: the newest takes over first.
        self.context = self._loaded()
        self.context.sni_callback = self._hand_over

    @classmethod
    def of(cls, settings: ExtenderSettings) -> Self | None:
        """None where it speaks without. Raises BadListening."""
        paths = (settings.cert, settings.key, settings.client_ca)
        return cls(*paths) if any(paths) else None

    async def follow(self, seconds: float = LOOK_SECONDS) -> None:
        """Until cancelled. What cannot be served with is not, and looked at again."""
        while True:
            await asyncio.sleep(seconds)
            try:
                self.look()
            except BadListening as error:
                LOG.warning("certificates not served", error=str(error))

    def look(self) -> None:
        """Raises BadListening, and goes on with what it had."""
        found = self._contents()
        if found != self._read:
            self._newest = self._loaded()
            self._read = found
            LOG.info("certificates served")

    def _contents(self) -> list[bytes]:
        try:
            return [Path(path).read_bytes() for path in self._paths if path is not None]
        except OSError as error:
            raise BadListening(f"TLS of the extender: {error}") from error

    def _loaded(self) -> ssl.SSLContext:
        cert, key, client_ca = self._paths
        made = tls_of(cert, key, client_ca)
        if made is None or cert is None:
            raise BadListening("TLS needs both a certificate and its key")
        # A session that is resumed shows no certificate: nobody shall outlast their authority so.
        made.options |= ssl.OP_NO_TICKET
        made.num_tickets = 0
        chain = x509.load_pem_x509_certificate(Path(cert).read_bytes())
        CERTIFICATE_ENDS.set(chain.not_valid_after_utc.timestamp())
        return made

    def _hand_over(self, connection: ssl.SSLObject, _name: str | None, _: ssl.SSLContext) -> None:
        connection.context = self._newest
