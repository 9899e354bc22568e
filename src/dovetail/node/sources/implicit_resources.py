"""A pod source around another: it adds the resources that pods ask for without saying so.

By role, as a NIC near to their CPUs: the specification calls that implicit. And whatever the role:
a container that asks for no CPUs has to run somewhere, but not on those that others have to
themselves; so its plugin is asked, for the least there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec

from dovetail.node.common.pod_identity import identity_of
from dovetail.node.common.pods import ContainerSpec, Pod, Sandbox
from dovetail.node.common.ports import PodSource
from dovetail.node.wire.resource_plugin import ContainerType

STAYING = (ContainerType.MAIN, ContainerType.SIDECAR)
LEAST = Fraction(1, 1000)


class ImplicitResources:
    """A `PodSource`: the pods of another one, with what they need."""

    def __init__(
        self, source: PodSource, needs: Mapping[str, Sequence[str]], always: Sequence[str]
    ) -> None:
        """`needs`: resources by role. `always`: of which each container has at least the least."""
        self._source, self._needs, self._always = source, needs, always

    async def pod(self, sandbox: Sandbox) -> Pod | None:
        found = await self._source.pod(sandbox)
        return None if found is None else self._complete(found)

    async def active(self) -> Sequence[Pod] | None:
        found = await self._source.active()
        return None if found is None else [self._complete(each) for each in found]

    def _complete(self, pod: Pod) -> Pod:
        return with_implicit_resources(
            pod, self._needs.get(identity_of(pod).role, ()), self._always
        )


def with_implicit_resources(pod: Pod, needs: Sequence[str], always: Sequence[str]) -> Pod:
    """One of what it needs for every container that stays and does not ask for it by itself."""
    return msgspec.structs.replace(
        pod,
        containers=tuple(
            msgspec.structs.replace(
                each, requests=_more(each, needs if each.type in STAYING else (), always)
            )
            for each in pod.containers
        ),
    )


def _more(
    container: ContainerSpec, needs: Sequence[str], always: Sequence[str]
) -> Mapping[str, Fraction]:
    asked = {**dict.fromkeys(needs, Fraction(1)), **container.requests}
    return {**asked, **{name: asked.get(name) or LEAST for name in always}}
