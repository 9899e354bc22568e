"""Ports to device plugins (protocols): who serves devices by ID, and how they are had.

The class devices of the agent (`node/class_devices`) see device plugins by these only;
`node/device_plugins` is behind them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from dovetail.node.wire.resource_plugin import DeviceSpec, Mount


class PluginDevice(msgspec.Struct, frozen=True):
    """A device as its plugin lists it."""

    id: str
    healthy: bool = True
    numa_nodes: tuple[int, ...] = ()
    """Empty if it is near to none, or the plugin does not say."""


class PluginOptions(msgspec.Struct, frozen=True, kw_only=True):
    pre_start_required: bool = False
    preferred_allocation: bool = False
    deallocates: bool = False
    """It serves Deallocate, which is ours: it hears of the end of each allocation."""


class DeviceGrant(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin says a container needs to use the devices."""

    envs: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceSpec, ...] = ()
    cdi_devices: tuple[str, ...] = ()


class DevicePlugin(Protocol):
    """A device plugin that registered once; it may be gone at the moment.

    Each call raises PluginError (`node/common/ports.py`).
    """

    @property
    def resource(self) -> str: ...

    @property
    def options(self) -> PluginOptions: ...

    @property
    def up(self) -> bool: ...

    @property
    def down_since(self) -> float | None:
        """On the monotonic clock; nothing while it is up."""
        ...

    @property
    def devices(self) -> Mapping[str, PluginDevice]:
        """By ID, as it last told; all are unhealthy while it is down."""
        ...

    def held_elsewhere(self, ids: Collection[str]) -> Sequence[str]:
        """Of these, the ones that the kubelet gave to a pod: it shares the plugin with us."""
        ...

    @property
    def held_elsewhere_unknown(self) -> str:
        """Why it is not known what the kubelet gave to pods; empty if it is, or shares nothing."""
        ...

    async def allocate(self, ids: Sequence[str]) -> DeviceGrant:
        """For one container. Refused if one is unknown, unhealthy, or the kubelet's pod has it.

        From the call on the kubelet does not get them: until it fails, until `deallocate`, or until
        `set_held` named them once and does not any more. Who of the classes' pods has which is for
        the caller to know: it may ask again for what it holds.
        """
        ...

    async def pre_start(self, ids: Sequence[str]) -> None:
        """Nothing happens if the plugin does not ask for it."""
        ...

    async def preferred(
        self, available: Collection[str], must_include: Collection[str], size: int
    ) -> Sequence[str]:
        """So many of those available, the ones included that must be.

        Fails as UNIMPLEMENTED if the plugin has no preferences.
        """
        ...

    async def deallocate(self, ids: Sequence[str]) -> None:
        """Call it at the end of every allocation, or when one came to nothing.

        The plugin is told if it serves Deallocate; while it is down that fails, and is to be called
        again.
        """
        ...


class DevicePlugins(Protocol):
    def of(self, resource: str) -> DevicePlugin | None: ...

    def all(self) -> Sequence[DevicePlugin]:
        """By name of the resource."""
        ...

    def set_held(self, resource: str, ids: Collection[str]) -> None:
        """What classes hold of it now: the kubelet, where it shares the plugin, must not.

        Those included of whose end the plugin has still to be told. Called for what the checkpoint
        has before device plugins are started, and at each change.
        """
        ...
