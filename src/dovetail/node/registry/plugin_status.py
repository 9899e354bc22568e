"""The status of each plugin, for the control socket."""

from __future__ import annotations

import msgspec

from dovetail.node.registry.endpoint import PluginEndpoint
from dovetail.node.registry.registration import PluginRegistration, RegistrationState
from dovetail.node.wire.resource_plugin import ResourcePluginOptions


class PluginStatus(msgspec.Struct, frozen=True, kw_only=True):
    resource: str
    """Empty as long as the plugin has not said it."""
    socket: str
    """Empty for a plugin that is known from before and has none now."""
    state: str
    """registering, up, failed, superseded, ignored, or gone."""
    since: float
    """Seconds of the wall clock."""
    options: ResourcePluginOptions | None = None
    versions: tuple[str, ...] = ()
    error: str = ""
    """Why it is not up; while it registers, why it was not before."""
    retries: int = 0
    """Attempts that failed since it was up."""
    next_retry: float | None = None
    """Seconds of the wall clock."""
    legacy: bool = False
    """Whether it registered in the older way."""

    @property
    def up(self) -> bool:
        return self.state == RegistrationState.UP


def status_of(each: PluginRegistration) -> PluginStatus:
    return PluginStatus(
        resource=each.resource,
        socket=each.socket,
        state=each.state.value,
        since=each.since,
        options=each.options,
        versions=each.versions,
        error=each.error,
        retries=0 if each.state is RegistrationState.UP else each.retry.failures,
        next_retry=each.retry.at,
        legacy=each.legacy is not None,
    )


def status_without_socket(each: PluginEndpoint, since: float) -> PluginStatus:
    return PluginStatus(
        resource=each.resource,
        socket="",
        state="gone",
        since=since,
        options=each.options,
        error="it has no socket; it registers when it comes back",
    )
