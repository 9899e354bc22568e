"""The status of each device plugin, for the control socket."""

from __future__ import annotations

import msgspec

from dovetail.node.common.device_plugins import PluginOptions
from dovetail.node.device_plugins.follower import DevicePluginFollower
from dovetail.node.device_plugins.sharing import KubeletShare


class DevicePluginStatus(msgspec.Struct, frozen=True, kw_only=True):
    resource: str
    mode: str
    """exclusive, or shared with the kubelet."""
    socket: str
    state: str
    """waiting for its socket, connecting, up, or failed."""
    since: float
    """Seconds of the wall clock."""
    options: PluginOptions
    devices: int
    healthy: int
    held_by_classes: int
    held_by_kubelet: int
    error: str = ""
    """Why it is not up, or what its list lacked; while it connects, why it was not up before."""
    kubelet: str = ""
    """Shared: why the kubelet has none of it."""
    retries: int = 0
    """Attempts that failed since it was up."""
    next_retry: float | None = None
    """Seconds of the wall clock."""


def status_of(follower: DevicePluginFollower, share: KubeletShare | None) -> DevicePluginStatus:
    plugin = follower.plugin
    classes, kubelet = plugin.holders.counts(plugin.devices)
    return DevicePluginStatus(
        resource=plugin.resource,
        mode="shared" if share else "exclusive",
        socket=str(follower.socket),
        state=follower.state.value,
        since=follower.since,
        options=plugin.options,
        devices=len(plugin.devices),
        healthy=sum(each.healthy for each in plugin.devices.values()),
        held_by_classes=classes,
        held_by_kubelet=kubelet,
        error=follower.error or "; ".join(follower.troubles),
        kubelet=share.error if share else "",
        retries=0 if plugin.up else follower.retry.failures,
        next_retry=follower.retry.at,
    )
