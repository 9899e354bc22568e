"""TLS with hot reload: certificates may be replaced while the server runs.

The files are looked at with every handshake. New connections get the new certificate; those that
are open go on with the old one. Files that do not fit together are told in the log and left alone.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path

import structlog

from dovetail.core.errors import DovetailError
from dovetail.rest.server.file_watch import FileWatch
from dovetail.rest.server.settings import TlsSettings

log = structlog.get_logger("dovetail.rest.tls")


class BadTls(DovetailError):
    """Certificates that cannot be used."""


class Certificates:
    """`context` is what the server listens with; each handshake goes on with the newest files."""

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        self._watch = FileWatch(*files_of(settings))
        self._complaint = ""
        self._watch.changed()
        self.context = self._newest = context_of(settings)
        self.context.sni_callback = self._choose

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _: ssl.SSLContext) -> None:
        if self._watch.changed():
            self._reload()
        connection.context = self._newest

    def _reload(self) -> None:
        try:
            self._newest, self._complaint = context_of(self._settings), ""
        except BadTls as error:
            if str(error) != self._complaint:
                log.error("certificates not taken in, the old ones stay", error=str(error))
            self._complaint = str(error)


def context_of(settings: TlsSettings) -> ssl.SSLContext:
    if settings.cert is None or settings.key is None:
        raise BadTls("TLS needs both --tls-cert and --tls-key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(settings.cert, settings.key, password=no_passphrase)
        if settings.client_ca is not None:
            context.load_verify_locations(settings.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
            # A session taken up again would pass by the certificates that are trusted now; in
            # TLS 1.2 there is no way to forbid that.
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.num_tickets = 0
    except (OSError, ValueError) as error:
        files = ", ".join(str(file) for file in files_of(settings))
        raise BadTls(f"TLS with {files}: {error}") from error
    return context


def files_of(settings: TlsSettings) -> list[Path]:
    named = (settings.cert, settings.key, settings.client_ca)
    return [Path(file) for file in named if file is not None]


def no_passphrase() -> str:
    raise ValueError("the private key needs a passphrase, and nobody is there to type it")


def tls_factory(settings: TlsSettings) -> Callable[..., ssl.SSLContext] | None:
    """What makes the context in each worker of uvicorn; None without TLS. Raises BadTls."""
    if settings == TlsSettings():
        return None
    context_of(settings)
    return partial(serving_context, settings)


def serving_context(settings: TlsSettings, *_: object) -> ssl.SSLContext:
    return Certificates(settings).context
