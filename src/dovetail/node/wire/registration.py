"""`pluginregistration`: how the kubelet, and we, get to know a plugin that serves on a socket."""

from __future__ import annotations

from typing import Annotated

from dovetail.wire.codec import Message
from dovetail.wire.rpc import Method

RESOURCE_PLUGIN = "ResourcePlugin"
"""The type of plugin that we look for."""


class InfoRequest(Message):
    pass


class PluginInfo(Message):
    type: Annotated[str, 1] = ""
    name: Annotated[str, 2] = ""
    """Of a resource plugin, the name of its resource."""
    endpoint: Annotated[str, 3] = ""
    """Where the plugin serves; the socket that was asked if empty."""
    supported_versions: Annotated[tuple[str, ...], 4] = ()


class RegistrationStatus(Message):
    plugin_registered: Annotated[bool, 1] = False
    error: Annotated[str, 2] = ""


class RegistrationStatusResponse(Message):
    pass


SERVICE = "pluginregistration.Registration"
GET_INFO = Method(SERVICE, "GetInfo", InfoRequest, PluginInfo)
NOTIFY_REGISTRATION_STATUS = Method(
    SERVICE, "NotifyRegistrationStatus", RegistrationStatus, RegistrationStatusResponse
)
