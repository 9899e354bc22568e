"""The settings of `dovetail operator`; its command loads them from file, environment and flags."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from dovetail.config.declaration import SettingsStruct
from dovetail.kube.runtime.settings import KubeDaemonSettings


class OperatorLease(SettingsStruct, frozen=True):
    seconds: Annotated[
        float,
        Meta(gt=0, description="How long a leader may be silent before another takes over."),
    ] = 15.0


class WebhookSettings(SettingsStruct, frozen=True):
    listen: Annotated[
        str | None,
        Meta(
            description="`HOST:PORT` at which the API server finds the admission webhook; without"
            " it there is none."
        ),
    ] = None
    name: Annotated[
        str,
        Meta(
            min_length=1,
            description="Name of its Service, of the Secret with its certificates, and of the"
            " configurations by which it is called.",
        ),
    ] = "dovetail-webhook"
    certificates: Annotated[
        Literal["self-managed", "files"],
        Meta(
            description="`self-managed`: the operator makes and renews them. `files`: somebody"
            " else does, such as cert-manager; they are read again when they change."
        ),
    ] = "self-managed"
    cert: Annotated[str | None, Meta(description="Certificate chain (PEM), for `files`.")] = None
    key: Annotated[str | None, Meta(description="Its private key (PEM), for `files`.")] = None
    hosts: Annotated[
        tuple[str, ...],
        Meta(
            description="Further names and addresses that self-managed certificates are for: of"
            " the URL, where the API server does not call the Service."
        ),
    ] = ()


class OperatorSettings(KubeDaemonSettings, frozen=True):
    """The settings of `dovetail operator`."""

    namespace: Annotated[
        str,
        Meta(min_length=1, description="Namespace of the stock, and of the operator's lease."),
    ] = "dovetail"
    image: Annotated[
        str,
        Meta(min_length=1, description="Image of the pods that hold stock; it needs `sleep`."),
    ] = "alpine:3.15.0"
    leader_elect: Annotated[
        bool, Meta(description="Of several replicas, only an elected one sells.")
    ] = True
    lease: Annotated[OperatorLease, Meta(description="Leader election.")] = OperatorLease()
    webhook: Annotated[WebhookSettings, Meta(description="Immediate refusals, if wanted.")] = (
        WebhookSettings()
    )
