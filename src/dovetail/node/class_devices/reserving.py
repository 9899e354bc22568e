"""Reservations: devices are a pod's from before their plugin is asked, and one pod's at a time.

The admission transaction asks for them first. Who holds what follows from the checkpoint: the pods
that are admitted or about to be, and those that went and whose plugins have not been told. A pod
may come before the agent has seen the end of the one that had its device; it waits a moment then.
Where the scheduler left IDs open, they are chosen here, by the plugin's preference if it has one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import structlog

from dovetail.node.class_devices.names import device_resource, is_class_resource, is_shared
from dovetail.node.common.device_plugins import DevicePlugin, DevicePlugins
from dovetail.node.common.pods import ContainerSpec, DeviceChoice
from dovetail.node.common.ports import AdmissionRejected, PluginError
from dovetail.node.common.reasons import DEVICE_TAKEN, PLUGIN_DOWN
from dovetail.node.state.pod_state import AgentState, PodState
from dovetail.node.state.store import StateStore

LOG = structlog.get_logger("dovetail.node.manager")

WAIT_SECONDS = 10.0
"""For the end of a pod whose device is another's by now."""

Devices = Mapping[str, Mapping[str, str]]
"""By resource: IDs by what choices call them, as in `PodState.devices`."""


class DeviceHolder(NamedTuple):
    uid: str
    words: str


class DeviceReservations:
    def __init__(
        self,
        store: StateStore,
        plugins: DevicePlugins,
        names: Mapping[str, str],
        *,
        look_soon: Callable[[], None] = lambda: None,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """`look_soon`: has somebody see which pods are over. `names`: resources that are served
        by the plugin of another name."""
        self._store, self._plugins, self._names = store, plugins, names
        self._look_soon, self._wait_seconds = look_soon, wait_seconds
        self._changed = asyncio.Event()
        self._told: dict[str, frozenset[str]] = {}
        store.listeners.append(self._take_in)
        self._take_in(store.state)

    async def reserve(self, draft: PodState, containers: Sequence[ContainerSpec]) -> PodState:
        """The draft with the devices of these containers, which are its from now on; not yet
        durable. Raises AdmissionRejected."""
        wanted = self._wanted(containers)
        if not wanted:
            return draft
        deadline = asyncio.get_running_loop().time() + self._wait_seconds
        while True:
            changed = self._changed
            devices = await self._choose(draft, wanted)
            # From here to the end nobody else gets a word in.
            taken = self._taken(draft.uid, devices)
            if taken is None:
                self._check_kubelet(draft, devices)
                reserved = msgspec.structs.replace(draft, devices=devices)
                self._store.put(reserved)
                return reserved
            self._look_soon()
            try:
                async with asyncio.timeout_at(deadline):
                    await changed.wait()
            except TimeoutError:
                raise AdmissionRejected(DEVICE_TAKEN, taken, later=True) from None

    def resolved(
        self, reserved: PodState, containers: Iterable[ContainerSpec]
    ) -> list[ContainerSpec]:
        """Containers whose choices all have IDs."""
        return [
            msgspec.structs.replace(
                each,
                chosen={
                    name: tuple(self._with_id(reserved, name, choice) for choice in own)
                    for name, own in each.chosen.items()
                },
            )
            if each.chosen
            else each
            for each in containers
        ]

    def _with_id(self, reserved: PodState, name: str, choice: DeviceChoice) -> DeviceChoice:
        known = reserved.devices.get(self._names.get(name, name), {})
        return msgspec.structs.replace(choice, id=known.get(choice.key, choice.id))

    def _wanted(self, containers: Iterable[ContainerSpec]) -> dict[str, list[DeviceChoice]]:
        found: dict[str, list[DeviceChoice]] = {}
        for container in containers:
            for name, own in container.chosen.items():
                exclusive = [each for each in own if not is_shared(each.resource)]
                if exclusive:
                    found.setdefault(self._names.get(name, name), []).extend(exclusive)
        return found

    async def _choose(
        self, draft: PodState, wanted: Mapping[str, Sequence[DeviceChoice]]
    ) -> dict[str, dict[str, str]]:
        found = {name: dict(own) for name, own in draft.devices.items()}
        for name, choices in sorted(wanted.items()):
            own = found.setdefault(name, {})
            own |= {each.key: each.id for each in choices if each.id}
            open_ = sorted({each.key for each in choices if not each.id} - own.keys())
            if open_:
                ids = await self._free(name, len(open_), own.values())
                own |= dict(zip(open_, ids, strict=True))
        return found

    async def _free(self, name: str, count: int, besides: Collection[str]) -> Sequence[str]:
        """So many devices that nobody has, and that are well."""
        resource = device_resource(name)
        plugin = self._plugins.of(resource)
        if plugin is None or not plugin.up:
            words = f"the device plugin for {resource} is not there, which has to tell its devices"
            raise AdmissionRejected(PLUGIN_DOWN, words, later=True)
        held = {*self._told.get(name, ()), *besides}
        well = [each.id for each in plugin.devices.values() if each.healthy]
        free = sorted({*well} - held - {*plugin.held_elsewhere(well)})
        if len(free) < count:
            words = f"{count} of {resource} are wanted, and {len(free)} of {len(well)} are free"
            raise AdmissionRejected(DEVICE_TAKEN, words, later=True)
        return await self._preferred(plugin, free, count)

    async def _preferred(
        self, plugin: DevicePlugin, free: Sequence[str], count: int
    ) -> Sequence[str]:
        if plugin.options.preferred_allocation and len(free) > count:
            try:
                found = await plugin.preferred(free, (), count)
            except PluginError as error:
                LOG.warning("no preference", resource=plugin.resource, why=str(error))
            else:
                if len(found) == count == len({*found} & {*free}):
                    return sorted(found)
                LOG.warning("no preference", resource=plugin.resource, why=f"it prefers {found}")
        return near_each_other(plugin, free, count)

    def _taken(self, uid: str, devices: Devices) -> str | None:
        """Who has one of these, in words."""
        holders = holders_of(self._store.state)
        for name, own in sorted(devices.items()):
            for id_ in sorted(own.values()):
                holder = holders.get((name, id_))
                if holder is not None and holder.uid != uid:
                    return f"device {id_} of {device_resource(name)} is held by {holder.words}"
        return None

    def _check_kubelet(self, draft: PodState, devices: Devices) -> None:
        """Where it shares the plugin. As soon as it is told which are ours, it gives none away."""
        for name, own in sorted(devices.items()):
            plugin = self._plugins.of(device_resource(name)) if is_class_resource(name) else None
            new = {*own.values()} - {*draft.devices.get(name, {}).values()}
            if plugin is None or not new:
                continue
            if why := plugin.held_elsewhere_unknown:
                words = (
                    f"it is not known which of {plugin.resource} the kubelet gave to pods: {why}"
                )
                raise AdmissionRejected(DEVICE_TAKEN, words, later=True)
            if taken := sorted(plugin.held_elsewhere(new)):
                words = (
                    f"device {', '.join(taken)} of {plugin.resource} is held by a pod that asked "
                    "the kubelet for the resource itself"
                )
                raise AdmissionRejected(DEVICE_TAKEN, words)

    def _take_in(self, state: AgentState) -> None:
        """Wake those who wait for a device, and tell what of which plugin classes hold."""
        self._changed.set()
        self._changed = asyncio.Event()
        held: dict[str, set[str]] = {name: set() for name in self._told}
        for name, id_ in holders_of(state):
            if is_class_resource(name):
                held.setdefault(name, set()).add(id_)
        for name, ids in held.items():
            if {*self._told.get(name, ())} != ids or name not in self._told:
                self._told[name] = frozenset(ids)
                self._plugins.set_held(device_resource(name), self._told[name])


def holders_of(state: AgentState) -> dict[tuple[str, str], DeviceHolder]:
    """By resource and ID."""
    found = {
        (name, id_): DeviceHolder(
            uid, f"a pod that went (uid {uid}), of which its plugin has not been told"
        )
        for uid, own in state.ended_devices.items()
        for name, ids in own.items()
        for id_ in ids
    }
    for pod in state.pods.values():
        holder = DeviceHolder(pod.uid, f"pod {pod.namespace}/{pod.name}")
        for name, own in pod.devices.items():
            found |= dict.fromkeys(((name, id_) for id_ in own.values()), holder)
    return found


def near_each_other(plugin: DevicePlugin, free: Sequence[str], count: int) -> Sequence[str]:
    """Those of one NUMA node if there are as many, of the fewest that do."""
    by_nodes: dict[tuple[int, ...], list[str]] = {}
    for each in free:
        by_nodes.setdefault(plugin.devices[each].numa_nodes, []).append(each)
    enough = [ids for ids in by_nodes.values() if len(ids) >= count]
    return min(enough, key=lambda ids: (len(ids), ids), default=sorted(free))[:count]
