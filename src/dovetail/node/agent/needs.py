"""Resources that pods of a role ask for without saying so, as a NIC near to their CPUs.

The specification calls these implicit: a pod says what it is, and the node what that needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec

from dovetail.node.manager.roles import identity
from dovetail.node.pods import Container, Pod, Sandbox
from dovetail.node.ports import PodSource
from dovetail.node.wire.resource_plugin import ContainerType

STAYING = (ContainerType.MAIN, ContainerType.SIDECAR)


class Needing:
    """A `PodSource`: the pods of another one, with what their roles need."""

    def __init__(self, source: PodSource, needs: Mapping[str, Sequence[str]]) -> None:
        """`needs`: resources by role."""
        self._source, self._needs = source, needs

    async def pod(self, sandbox: Sandbox) -> Pod | None:
        found = await self._source.pod(sandbox)
        return None if found is None else self._complete(found)

    async def active(self) -> Sequence[Pod] | None:
        found = await self._source.active()
        return None if found is None else [self._complete(each) for each in found]

    def _complete(self, pod: Pod) -> Pod:
        return completed(pod, self._needs.get(identity(pod).role, ()))


def completed(pod: Pod, resources: Sequence[str]) -> Pod:
    """One of each for every container that stays and does not ask for it by itself."""
    if not resources:
        return pod
    containers = tuple(
        msgspec.structs.replace(each, requests=_more(each, resources))
        if each.type in STAYING
        else each
        for each in pod.containers
    )
    return msgspec.structs.replace(pod, containers=containers)


def _more(container: Container, resources: Sequence[str]) -> Mapping[str, Fraction]:
    return {**dict.fromkeys(resources, Fraction(1)), **container.requests}
