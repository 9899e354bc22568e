"""The settings of `dovetail scheduler`; its command loads them from file, environment and flags."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from dovetail.config.declaration import SettingsStruct
from dovetail.kube.runtime.settings import KubeDaemonSettings


class LeaseSettings(SettingsStruct, frozen=True):
    namespace: Annotated[
        str, Meta(description="Namespace of the lease by which replicas elect their leader.")
    ] = "dovetail"
    seconds: Annotated[
        float,
        Meta(gt=0, description="How long a leader may be silent before another takes over."),
    ] = 15.0


class ExtenderSettings(SettingsStruct, frozen=True):
    listen: Annotated[
        str | None,
        Meta(description="`HOST:PORT` at which kube-scheduler finds this as an extender."),
    ] = None
    cert: Annotated[
        str | None, Meta(description="Certificate chain (PEM); with it, the extender speaks TLS.")
    ] = None
    key: Annotated[str | None, Meta(description="Private key of the certificate (PEM).")] = None
    client_ca: Annotated[
        str | None,
        Meta(description="Certificates (PEM) one of which must have signed kube-scheduler's own."),
    ] = None
    open_beyond_loopback: Annotated[
        bool,
        Meta(
            description="Needed to listen for other machines without `client_ca`: everybody who "
            "can reach the port can then bind any pod to any node."
        ),
    ] = False


class SchedulerSettings(KubeDaemonSettings, frozen=True):
    """The settings of `dovetail scheduler`."""

    name: Annotated[
        str, Meta(min_length=1, description="Pods with this `schedulerName` are placed.")
    ] = "dovetail"
    strategy: Annotated[
        Literal["firstFit", "strictFirstFit", "bestFit", "spread", "scarceAware"],
        Meta(description="Which of the devices that would do are taken."),
    ] = "firstFit"
    leader_elect: Annotated[
        bool, Meta(description="Of several replicas, only an elected one places pods.")
    ] = True
    lease: Annotated[LeaseSettings, Meta(description="Leader election.")] = LeaseSettings()
    extender: Annotated[ExtenderSettings, Meta(description="For clusters with kube-scheduler.")] = (
        ExtenderSettings()
    )
