"""The scheduler at work on a real cluster."""

from __future__ import annotations

from tests.kube.scheduler import real
from tests.support.kube.cluster import Cluster


def test_pods_are_bound_annotated_and_accounted(own_cluster: Cluster, database: str) -> None:
    cluster = own_cluster
    real.install(cluster)
    cluster.apply(real.class_object("gpu"))
    cluster.add_nodes(3, annotations=real.devices("g0", "g1"))
    cluster.make_namespace("work")
    with real.scheduler(cluster, database, "scheduler") as process:
        cluster.await_that(lambda: real.is_ready(process), "scheduler")
        wanted = [real.pod_object(f"p{n}", "work", {"gpu": 1}) for n in range(7)]
        real.create(cluster, [*wanted, real.pod_object("plain", "work", {})])
        cluster.await_that(lambda: real.bound(cluster, "work") == 7, "pods with nodes")
        said = real.told_by_pods(cluster, "work")
        assert len({place for mine in said.values() for place in mine}) == 6
        assert said == real.told_by_ledger(database)
        numbers = (
            "get",
            "rescls",
            "gpu",
            "-o",
            "jsonpath={.status.allocatable} {.status.requested}",
        )
        cluster.await_that(lambda: cluster.kubectl(*numbers) == "6 6", "numbers of the class")
        (left,) = [pod for pod in real.pods(cluster, "work") if not pod["spec"].get("nodeName")]
        reason = ("get", "events", "-n", "work", "--field-selector=reason=FailedScheduling")
        cluster.await_that(lambda: left["metadata"]["name"] in cluster.kubectl(*reason), "words")
        cluster.kubectl("delete", "pod", "-n", "work", "--all", "--wait=false")
        cluster.await_that(lambda: real.told_by_ledger(database) == {}, "devices given back")
        cluster.await_that(lambda: cluster.kubectl(*numbers) == "6 0", "numbers of the class")
