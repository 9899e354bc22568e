"""The agent's state as immutable values: pods, what they hold, plugins, RemovePod calls to make."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TypeVar

import msgspec

from dovetail.node.wire.resource_plugin import ResourceAllocationInfo, ResourcePluginOptions

V = TypeVar("V")

Allocations = Mapping[str, ResourceAllocationInfo]
"""By resource, accompanying ones included."""


class ContainerHolding(msgspec.Struct, frozen=True, kw_only=True):
    """What a container was given."""

    allocations: Allocations = {}
    missing: tuple[str, ...] = ()
    """Resources it does without, because their plugins were down and its role allows that."""
    requests: Mapping[str, str] = {}
    limits: Mapping[str, str] = {}
    """What that was given for, as fractions; nothing if it was before these were kept."""
    told: Mapping[str, int] = {}
    """What the kubelet told the runtime of it last, as far as that tells amounts."""
    resizing: tuple[str, ...] = ()
    """Resources whose plugins may know another amount, or of which it may still run on more."""


class PodState(msgspec.Struct, frozen=True, kw_only=True):
    uid: str
    namespace: str
    name: str
    role: str = ""
    type: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    admitted: bool = False
    """Else only meant to be: plugins may have allocated something, and no container may start."""
    plugins: tuple[str, ...] = ()
    """Resources whose plugins were told of the pod, or may have been: they hear of its end."""
    containers: Mapping[str, ContainerHolding] = {}
    pod_wide: tuple[str, ...] = ()
    """Resources that were allocated to the pod as a whole: each container has all of it."""
    whole: Mapping[str, str] = {}
    """What the pod itself asked for when these were allocated, as fractions."""
    at: float = 0.0
    """When it was admitted, in seconds since 1970."""
    devices: Mapping[str, Mapping[str, str]] = {}
    """By resource: IDs of the devices that are the pod's from before its plugins are asked, by what
    the pod's choice calls them, which is the ID itself unless that was left open."""


class AgentState(msgspec.Struct, frozen=True, kw_only=True):
    pods: Mapping[str, PodState] = {}
    """By uid."""
    removals: Mapping[str, tuple[str, ...]] = {}
    """Pods that went, by uid, and the resources whose plugins have not been told."""
    plugins: Mapping[str, ResourcePluginOptions] = {}
    """Plugins that have been here, by resource: one that is missing later is down, not unknown."""
    ended_devices: Mapping[str, Mapping[str, tuple[str, ...]]] = {}
    """Devices of pods that went, by uid and resource, as long as their plugins have not been told:
    until then nobody else may have them."""

    def with_pod(self, pod: PodState) -> AgentState:
        return msgspec.structs.replace(self, pods={**self.pods, pod.uid: pod})

    def without_pod(self, uid: str, tell: Iterable[str]) -> AgentState:
        """The pod is forgotten; the plugins of these resources are to be told."""
        pods = {each: pod for each, pod in self.pods.items() if each != uid}
        waiting = sorted({*self.removals.get(uid, ()), *tell})
        had = self.pods[uid].devices if uid in self.pods else {}
        ended = {name: {*ids} for name, ids in self.ended_devices.get(uid, {}).items()}
        for name in had.keys() & set(waiting):
            ended.setdefault(name, set()).update(had[name].values())
        return msgspec.structs.replace(
            self,
            pods=pods,
            ended_devices=_with(
                self.ended_devices,
                uid,
                {name: tuple(sorted(ids)) for name, ids in sorted(ended.items())},
            ),
        )._waiting(uid, waiting)

    def without_removal(self, uid: str, resource: str) -> AgentState:
        """The plugin knows that the pod went."""
        waiting = [each for each in self.removals.get(uid, ()) if each != resource]
        ended = {
            name: ids for name, ids in self.ended_devices.get(uid, {}).items() if name != resource
        }
        return msgspec.structs.replace(
            self, ended_devices=_with(self.ended_devices, uid, ended)
        )._waiting(uid, waiting)

    def with_plugin(self, resource: str, options: ResourcePluginOptions) -> AgentState:
        return msgspec.structs.replace(self, plugins={**self.plugins, resource: options})

    def without_plugin(self, resource: str) -> AgentState:
        """It was uninstalled. Should it come back, it still has to hear of pods that went."""
        plugins = {each: known for each, known in self.plugins.items() if each != resource}
        return msgspec.structs.replace(self, plugins=plugins)

    def _waiting(self, uid: str, waiting: Iterable[str]) -> AgentState:
        return msgspec.structs.replace(self, removals=_with(self.removals, uid, tuple(waiting)))


def _with(known: Mapping[str, V], uid: str, found: V) -> dict[str, V]:
    """With what there is of the pod, if anything."""
    others = {each: value for each, value in known.items() if each != uid}
    return {**others, uid: found} if found else others


def amount_texts(amounts: Mapping[str, Fraction]) -> dict[str, str]:
    """Exact, for a file."""
    return {name: str(amount) for name, amount in sorted(amounts.items())}


def amounts_of(texts: Mapping[str, str]) -> dict[str, Fraction]:
    return {name: Fraction(text) for name, text in texts.items()}


def refreshed_allocations(known: Allocations, found: Allocations) -> Allocations:
    """What is known, brought up to date. A plugin that tells no hints has not lost them."""
    fresh = {resource: with_hints(known.get(resource), info) for resource, info in found.items()}
    return dict(sorted({**known, **fresh}.items()))


def with_hints(
    known: ResourceAllocationInfo | None, found: ResourceAllocationInfo
) -> ResourceAllocationInfo:
    if known is None or found.resource_hints is not None:
        return found
    return msgspec.structs.replace(found, resource_hints=known.resource_hints)


def recovered_state(state: AgentState, *, exact: bool) -> AgentState:
    """The state to start with, after whatever ended the previous run.

    Pods that were only meant to be admitted are taken back from the plugins: the kubelet asks
    again. If the state is not exactly the last one, such a pod may run by now; it is kept, holding
    nothing that we know of, until it is admitted again or gone.
    """
    for pod in state.pods.values():
        if pod.admitted:
            continue
        if exact:
            state = state.without_pod(pod.uid, pod.plugins)
        else:
            state = state.with_pod(msgspec.structs.replace(pod, admitted=True))
    return state
