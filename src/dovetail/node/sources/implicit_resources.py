"""A pod source around another: it adds the resources that pods ask for without saying so.

By role, as a NIC near to their CPUs: the specification calls that implicit. And whatever the role:
a container that asks for no CPUs has to run somewhere, but not on those that others have to
themselves; so its plugin is asked, for the least there is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from fractions import Fraction

import msgspec

from dovetail.node.common.pod_identity import identity_of
from dovetail.node.common.pods import Amounts, ContainerSpec, Pod, Sandbox
from dovetail.node.common.ports import PodSource
from dovetail.node.wire.resource_plugin import ContainerType

STAYING = (ContainerType.MAIN, ContainerType.SIDECAR)
LEAST = Fraction(1, 1000)


class ImplicitResources:
    """A `PodSource`: the pods of another one, with what they need."""

    def __init__(
        self,
        source: PodSource,
        needs: Mapping[str, Sequence[str]],
        always: Sequence[str],
        names: Mapping[str, str] | None = None,
    ) -> None:
        """`needs`: resources by role. `always`: of which each container has at least the least.

        `names`: resources that are served by the plugin of another name; who asks for one of them
        asks for the other.
        """
        self._source, self._needs, self._always = source, needs, always
        self._names = names or {}

    async def pod(self, sandbox: Sandbox) -> Pod | None:
        found = await self._source.pod(sandbox)
        return None if found is None else self._complete(found)

    async def active(self) -> Sequence[Pod] | None:
        found = await self._source.active()
        return None if found is None else [self._complete(each) for each in found]

    def _complete(self, pod: Pod) -> Pod:
        needs = self._needs.get(identity_of(pod).role, ())
        return with_implicit_resources(pod, needs, self._always, self._names)


def with_implicit_resources(
    pod: Pod, needs: Sequence[str], always: Sequence[str], names: Mapping[str, str]
) -> Pod:
    """One of what it needs for every container that stays and does not ask for it by itself.

    What the pod asks for as a whole, its containers have.
    """
    whole = served(pod.requests, names)
    return msgspec.structs.replace(
        pod,
        containers=tuple(
            msgspec.structs.replace(
                each,
                requests=_more(
                    each, needs if each.type in STAYING else (), always, names, whole=whole
                ),
            )
            for each in pod.containers
        ),
    )


def _more(
    container: ContainerSpec,
    needs: Sequence[str],
    always: Sequence[str],
    names: Mapping[str, str],
    *,
    whole: Set[str],
) -> Amounts:
    asked = container.requests
    for wanted, amount in ((needs, Fraction(1)), (always, LEAST)):
        had = served(asked, names) | whole
        lacking = [name for name in wanted if names.get(name, name) not in had]
        asked = {**asked, **dict.fromkeys(lacking, amount)}
    return asked


def served(requests: Amounts, names: Mapping[str, str]) -> set[str]:
    """The resources whose plugins are asked for something."""
    return {names.get(name, name) for name, amount in requests.items() if amount}
