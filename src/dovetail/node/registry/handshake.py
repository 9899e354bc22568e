"""The registration handshake (GetInfo, options, notification) with whatever serves at a socket."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import NamedTuple

import grpc.aio

from dovetail.core.errors import DovetailError
from dovetail.node.common.ports import PluginError, PluginFailure
from dovetail.node.registry.deadlines import Deadlines
from dovetail.node.registry.endpoint import ask
from dovetail.node.wire.registration import (
    GET_INFO,
    NOTIFY_REGISTRATION_STATUS,
    RESOURCE_PLUGIN,
    InfoRequest,
    PluginInfo,
    RegistrationStatus,
)
from dovetail.node.wire.resource_plugin import (
    GET_RESOURCE_PLUGIN_OPTIONS,
    VERSION,
    Empty,
    ResourcePluginOptions,
)

RESOURCE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?(/[A-Za-z0-9._-]+)?", re.ASCII)
LONGEST_NAME = 253


class OtherPluginType(Exception):
    """A plugin of another type, which is the kubelet's business."""


class UnfitPlugin(DovetailError):
    """A resource plugin that cannot be used, and why."""


class PluginIntroduction(NamedTuple):
    resource: str
    endpoint: str
    """Where the resource plugin serves."""
    versions: tuple[str, ...]


async def introduce(
    channel: grpc.aio.Channel, socket: str, deadlines: Deadlines
) -> PluginIntroduction:
    """Raises OtherPluginType, UnfitPlugin or PluginError."""
    try:
        info = await ask(channel, GET_INFO, InfoRequest(), deadlines.info, socket)
    except PluginError as error:
        if error.failure is PluginFailure.GARBAGE:
            raise UnfitPlugin(str(error)) from None
        raise
    if info.type != RESOURCE_PLUGIN:
        raise OtherPluginType(f"it is of type {info.type!r}; only {RESOURCE_PLUGIN} is used here")
    if wrong := objection(info.name, info.supported_versions):
        raise UnfitPlugin(wrong)
    return PluginIntroduction(info.name, endpoint_of(info, socket), info.supported_versions)


def objection(resource: str, versions: tuple[str, ...]) -> str | None:
    """Why a plugin cannot be used, in words."""
    if len(resource) > LONGEST_NAME or not RESOURCE.fullmatch(resource):
        return (
            f"{resource[:LONGEST_NAME]!r} is no name of a resource, such as cpu or vendor.com/nic"
        )
    if VERSION not in versions:
        spoken = ", ".join(versions) or "none"
        return f"the plugin for {resource} speaks the versions {spoken}; {VERSION} is needed"
    return None


def endpoint_of(info: PluginInfo, socket: str) -> str:
    """Where it says it serves, or else where it was found."""
    return str(PurePath(socket).parent / info.endpoint) if info.endpoint else socket


async def options_of(
    channel: grpc.aio.Channel, resource: str, deadlines: Deadlines
) -> ResourcePluginOptions:
    return await ask(channel, GET_RESOURCE_PLUGIN_OPTIONS, Empty(), deadlines.call, resource)


async def notify(
    channel: grpc.aio.Channel, error: str, resource: str, deadlines: Deadlines
) -> None:
    """Tell the plugin that it is registered, or why not."""
    status = RegistrationStatus(plugin_registered=not error, error=error)
    await ask(channel, NOTIFY_REGISTRATION_STATUS, status, deadlines.notify, resource)
