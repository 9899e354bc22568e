"""Settings of the HTTP edge, sections of the server's: limits of requests, rate limit, TLS."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dovetail.config.declaration import SettingsStruct

Bytes = Annotated[int, Meta(ge=1)]


class RequestLimits(SettingsStruct, frozen=True):
    """What one request may cost."""

    body_bytes: Annotated[Bytes, Meta(description="Largest body of a request; 413 beyond.")] = (
        8 * 2**20
    )
    fleet_bytes: Annotated[Bytes, Meta(description="Largest fleet document; 413 beyond.")] = (
        4 * 2**30
    )
    query_bytes: Annotated[Bytes, Meta(description="Longest query string; 414 beyond.")] = (
        32 * 2**10
    )
    groups: Annotated[
        int,
        Meta(
            ge=1,
            description="Most groups of one request for candidates, and most `same_subtree` "
            "between them; 400 beyond.",
        ),
    ] = 100
    search_seconds: Annotated[
        float,
        Meta(gt=0, description="Longest search for candidates; 400 beyond, with advice."),
    ] = 10.0
    randomize_allocation_candidates: Annotated[
        bool,
        Meta(
            description="Whether `GET /allocation_candidates` gives candidates of equal score in "
            "another order each time, so that many who ask at once do not all claim the first."
        ),
    ] = False


class RateSettings(SettingsStruct, frozen=True):
    """How often one caller may ask one server process."""

    limit: Annotated[
        Annotated[str, Meta(pattern=r"^(?![0.]+/)[0-9]+(\.[0-9]+)?/s$")] | None,
        Meta(description="Requests a second of one caller, such as `50/s`; 429 beyond."),
    ] = None
    burst: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Requests a caller may save up; otherwise those of two seconds."),
    ] = None


class TlsSettings(SettingsStruct, frozen=True):
    """TLS: the certificate of this server, and whose certificates callers need."""

    cert: Annotated[
        str | None, Meta(description="Certificate chain (PEM); with it, the server speaks TLS.")
    ] = None
    key: Annotated[str | None, Meta(description="Private key of the certificate (PEM).")] = None
    client_ca: Annotated[
        str | None,
        Meta(
            description="Certificates (PEM) one of which must have signed a caller's own; needs "
            "callers that speak TLS 1.3."
        ),
    ] = None
