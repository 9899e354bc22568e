"""A device plugin that lists what it is told to, and gives nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dovetail.node.common.device_plugins import DeviceGrant, PluginDevice, PluginOptions


class ListedPlugin:
    """A `DevicePlugin`."""

    def __init__(self, resource: str, *devices: PluginDevice) -> None:
        self.resource = resource
        self.options = PluginOptions()
        self.up, self.down_since = True, None
        self.devices = {each.id: each for each in devices}
        self.elsewhere: set[str] = set()
        self.held_elsewhere_unknown = ""

    def held_elsewhere(self, ids: Collection[str]) -> Sequence[str]:
        return [each for each in ids if each in self.elsewhere]

    async def allocate(self, ids: Sequence[str]) -> DeviceGrant:
        raise NotImplementedError

    async def pre_start(self, ids: Sequence[str]) -> None:
        raise NotImplementedError

    async def preferred(
        self, available: Collection[str], must_include: Collection[str], size: int
    ) -> Sequence[str]:
        raise NotImplementedError

    async def deallocate(self, ids: Sequence[str]) -> None:
        raise NotImplementedError
