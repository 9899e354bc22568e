"""Settings that every daemon of a cluster has; scheduler and operator add their own."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from dovetail.config.declaration import SettingsStruct
from dovetail.ledger.database.settings import LedgerSettings

Port = Annotated[int, Meta(ge=0, le=65535)]


class KubeDaemonSettings(SettingsStruct, frozen=True):
    kubeconfig: Annotated[
        str | None,
        Meta(description="How the API server is reached; in a pod, its service account says."),
    ] = None
    database: Annotated[
        str, Meta(description="`sqlite:///PATH` or `postgresql://USER@HOST/NAME`.")
    ] = "sqlite:///dovetail.db"
    ledger: Annotated[
        LedgerSettings, Meta(description="How long the database may take; its connections.")
    ] = LedgerSettings()
    cluster: Annotated[
        str, Meta(description="Name of this cluster, where several share the ledger.")
    ] = ""
    metrics_port: Annotated[
        Port | None, Meta(description="Port of `/metrics` and `/healthz`, on all addresses.")
    ] = None
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Meta(description="The least important lines that are logged."),
    ] = "info"
