"""Settings of intents, a section of the server's."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dovetail.config.declaration import SettingsStruct


class IntentSettings(SettingsStruct, frozen=True):
    """Hardware intents over many clusters."""

    emco_status_codes: Annotated[
        bool,
        Meta(
            description="Answer as EMCO does: its status codes, errors as plain text, `null` for "
            "an empty list, and PUT that makes what is not there."
        ),
    ] = False
    upload_bytes: Annotated[
        int,
        Meta(
            ge=1,
            le=40 * 2**20,
            description="Largest request with a file: an app's manifests or chart, a cluster's "
            "kubeconfig or snapshot; 413 beyond.",
        ),
    ] = 32 * 2**20
