"""The plugins of a node with its device plugins beside them, as the manager sees them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from dovetail.node.class_devices.adapter import ClassDevicePlugin
from dovetail.node.class_devices.names import device_resource, is_class_resource
from dovetail.node.common.device_plugins import DevicePlugin, DevicePlugins
from dovetail.node.common.ports import Plugin, PluginRegistry
from dovetail.node.state.store import StateStore


class PluginsAndDevices:
    """A `PluginRegistry`: another one, and a plugin for each resource of classes."""

    def __init__(self, registry: PluginRegistry, devices: DevicePlugins, store: StateStore) -> None:
        self._registry, self._devices, self._store = registry, devices, store
        self._adapters: dict[str, ClassDevicePlugin] = {}

    def of(self, resource: str) -> Plugin | None:
        """Of a resource of classes always one: a pod that has a device does not start without."""
        if not is_class_resource(resource):
            return self._registry.of(resource)
        if resource not in self._adapters:
            self._adapters[resource] = ClassDevicePlugin(
                device_resource(resource), self._devices, self._store
            )
        return self._adapters[resource]

    def all(self) -> Sequence[Plugin]:
        """Those that have a say of their own: device plugins tell nothing of containers."""
        return self._registry.all()

    def forget(self, resource: str) -> bool:
        return self._registry.forget(resource)

    def statuses(self) -> Sequence[msgspec.Struct]:
        return self._registry.statuses()


class NoDevicePlugins:
    """A `DevicePlugins` of an agent that serves none."""

    def of(self, resource: str) -> DevicePlugin | None:  # noqa: ARG002
        return None

    def all(self) -> Sequence[DevicePlugin]:
        return ()

    def set_held(self, resource: str, ids: Collection[str]) -> None:
        pass
