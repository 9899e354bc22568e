"""The soak in short: cuts, restarts and killed leaders; nothing missed, undone or done twice."""

from __future__ import annotations

from dovetail.kube.api.client import connect
from dovetail.podfit.objects import Pod
from tests.kube.soak import NAMESPACE, TROUBLES, Plan, soaking, too_old
from tests.support.kube.cluster import Cluster


async def test_two_replicas_come_through_everything(own_cluster: Cluster) -> None:
    plan = Plan(nodes=20, pods=200, seconds=0, every=1)
    async with connect(str(own_cluster.kubeconfig)) as api, soaking(plan, own_cluster) as soak:
        version = (await api.list(Pod, namespace=NAMESPACE)).resource_version
        report = await soak.run()
        assert (report.missed, report.breaks, report.undone, report.twice) == (0, 0, 0, 0)
        assert report.pieces_of_work >= report.pods
        assert set(report.troubles) == set(TROUBLES)
        assert sum(each["done"] for each in report.replicas) > 0
        # An API server that was started anew knows nothing of before: informers had to list.
        assert await too_old(api, version)
        assert max(each["lists"] for each in report.replicas) > 2
