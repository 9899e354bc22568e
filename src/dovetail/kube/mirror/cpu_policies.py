"""CPU policies: asks the kubelets of a cluster, through its API server, which of them pin CPUs.

The follower of a cluster runs it. Each node is asked once, where that is allowed (`nodes/proxy`);
where it is not, the label of Dovetail's own agent is all that tells.
"""

from __future__ import annotations

import asyncio
import math

from dovetail.kube.api.port import ApiError, ApiUnreachable, KubeApi
from dovetail.kube.mirror.observation import ClusterObservation
from dovetail.kube.mirror.timings import MirrorTimings
from dovetail.podfit.objects import ApiResource, ApiStruct, KubeObject

STATIC = "static"
REFUSED = (401, 403)


class KubeletConfiguration(ApiStruct, frozen=True, kw_only=True):
    cpu_manager_policy: str = "none"


class KubeletConfigz(KubeObject, frozen=True, kw_only=True):
    """What a kubelet answers to `configz`; its name is `NODE/proxy/configz`."""

    API = ApiResource("", "v1", "nodes", "KubeletConfigz", namespaced=False)

    kubeletconfig: KubeletConfiguration = KubeletConfiguration()


class CpuPolicies:
    def __init__(
        self, api: KubeApi, observation: ClusterObservation, timings: MirrorTimings
    ) -> None:
        self._api, self._observation, self._timings = api, observation, timings
        self._due: dict[str, float] = {}
        """By node, when it is asked again: never, once it answered."""

    async def run(self) -> None:
        """Until cancelled, or it turns out not to be allowed."""
        while True:
            if not await self._ask_all():
                return
            await asyncio.sleep(self._timings.new_nodes_seconds)

    async def _ask_all(self) -> bool:
        """Nodes that have not told, one after the other, for none of it is urgent.

        False: that is not allowed.
        """
        there = set(self._observation.nodes)
        self._due = {node: due for node, due in self._due.items() if node in there}
        now = asyncio.get_running_loop().time()
        for node in sorted(node for node in there if self._due.get(node, now) <= now):
            try:
                told = await self._api.get(KubeletConfigz, f"{node}/proxy/configz")
            except ApiError as error:
                if error.code in REFUSED:
                    return False
                self._due[node] = now + self._timings.policies_seconds
            except ApiUnreachable:
                self._due[node] = now + self._timings.policies_seconds
            else:
                self._due[node] = math.inf
                is_static = told.kubeletconfig.cpu_manager_policy == STATIC
                self._observation.set_policy(node, is_static)
        return True
