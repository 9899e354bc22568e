"""Settings of hardware intents, a section of the server's."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dovetail.config.declaration import SettingsStruct


class IntentSettings(SettingsStruct, frozen=True):
    """Hardware intents over many clusters."""

    mirror: Annotated[
        bool,
        Meta(
            description="Follow registered clusters and carry deployments out. One process of all "
            "servers on a database does it at a time; `false` leaves it to the others."
        ),
    ] = True
    apply_seconds: Annotated[
        int,
        Meta(
            ge=1,
            description="How long an instantiate or an update may take until all objects are "
            "applied. Beyond, an instantiate fails: what was applied is removed again.",
        ),
    ] = 300
    hold_seconds: Annotated[
        int,
        Meta(
            ge=1,
            description="How long a claim is held for a deployment of which nothing was sent to "
            "any cluster: then nobody carries it out, and others get what it holds.",
        ),
    ] = 900
    controller_seconds: Annotated[
        float,
        Meta(
            gt=0,
            description="How long a placement controller may take to answer, unless its "
            "registration says so.",
        ),
    ] = 10.0
    kubeconfigs: Annotated[
        str | None,
        Meta(
            description="Directory of kubeconfigs that clusters refer to by name "
            "(`kubeconfigRef`); they may say all that a kubeconfig can say."
        ),
    ] = None
    helm: Annotated[
        str | None,
        Meta(description="The program `helm`, to render charts; otherwise the one on the PATH."),
    ] = None
    etcd: Annotated[
        Annotated[str, Meta(pattern=r"^.+:[0-9]{1,5}$")] | None,
        Meta(
            description="`HOST:PORT` of the etcd in which controllers of EMCO find what they are "
            "asked about; without it they cannot be called."
        ),
    ] = None
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
