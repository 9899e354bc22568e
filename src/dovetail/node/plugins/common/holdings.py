"""What containers have of a resource: what all plugins keep, whatever the resource."""

from __future__ import annotations

from typing import Generic, Self, TypeVar

import msgspec

from dovetail.node.plugins.common.requests import PluginRequest


class ResourceHolding(msgspec.Struct, frozen=True, kw_only=True):
    """What a container has."""

    pod: str
    """Its uid."""
    namespace: str
    name: str
    container: str
    init: bool = False
    role: str
    """As the file of roles calls it; empty if none matched."""

    @property
    def key(self) -> tuple[str, str]:
        return self.pod, self.container

    @property
    def shown(self) -> str:
        return f"{self.namespace}/{self.name}"

    def is_for(self, ask: PluginRequest) -> bool:
        return self.key == (ask.pod, ask.container)


H = TypeVar("H", bound=ResourceHolding)


class PluginState(msgspec.Struct, Generic[H], frozen=True, kw_only=True):
    """Immutable: a decision makes a new one."""

    holdings: tuple[H, ...] = ()
    """By pod and container."""

    def of(self, pod: str, container: str) -> H | None:
        return next((each for each in self.holdings if each.key == (pod, container)), None)

    def with_holding(self, new: H) -> Self:
        others = (each for each in self.holdings if each.key != new.key)
        ordered = sorted((*others, new), key=lambda each: each.key)
        return msgspec.structs.replace(self, holdings=tuple(ordered))

    def without(self, pod: str) -> Self:
        left = tuple(each for each in self.holdings if each.pod != pod)
        return msgspec.structs.replace(self, holdings=left)
