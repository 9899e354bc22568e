"""A real kube-scheduler binds pods with classes through the extender, over TLS both ways."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.kube.scheduler import real
from tests.kube.scheduler.dra.real_claims import (
    allocated,
    claim_name,
    device_class,
    slice_object,
    words,
)
from tests.support.kube.cluster import Cluster
from tests.support.processes import reserved_port


@contextmanager
def extended(cluster: Cluster, database: str) -> Iterator[None]:
    """With kube-scheduler, and an extender that it asks about pods of the class `gpu`."""
    certificate, key = cluster.authority.issue("extender")
    theirs, their_key = cluster.authority.issue("kube-scheduler")
    with reserved_port() as port:
        process = real.scheduler(
            cluster,
            database,
            "scheduler",
            *("--extender-listen", f"127.0.0.1:{port}", "--extender-cert", str(certificate)),
            *(
                "--extender-key",
                str(key),
                "--extender-client-ca",
                str(cluster.authority.certificate),
            ),
        )
        extender = {
            "urlPrefix": f"https://127.0.0.1:{port}",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "bindVerb": "bind",
            "weight": 1,
            "nodeCacheCapable": True,
            "enableHTTPS": True,
            "tlsConfig": {
                "caFile": str(cluster.authority.certificate),
                "certFile": str(theirs),
                "keyFile": str(their_key),
            },
            "managedResources": [
                {"name": "resourceclass.dovetail.dev/gpu", "ignoredByScheduler": True}
            ],
        }
        with process:
            cluster.await_that(lambda: real.is_ready(process), "extender")
            cluster.start_scheduler({"extenders": [extender]})
            yield


def test_kube_scheduler_places_pods_with_classes(own_cluster: Cluster, database: str) -> None:
    cluster = own_cluster
    real.install(cluster)
    cluster.apply(real.class_object("gpu"))
    cluster.add_nodes(2, annotations=real.devices("g0", "g1"))
    cluster.add_nodes(3, prefix="plain")
    cluster.make_namespace("work")
    with extended(cluster, database):
        wanted = [
            real.pod_object(f"p{n}", "work", {"gpu": 1}, "default-scheduler") for n in range(5)
        ]
        plain = real.pod_object("plain", "work", {}, "default-scheduler")
        real.create(cluster, [*wanted, plain])
        cluster.await_that(lambda: real.bound(cluster, "work") == 5, "pods with nodes", 60)
        said = real.told_by_pods(cluster, "work")
        assert len(said) == 4
        assert len({place for mine in said.values() for place in mine}) == 4
        assert said == real.told_by_ledger(database)
        (left,) = [pod for pod in real.pods(cluster, "work") if not pod["spec"].get("nodeName")]
        words = ("describe", "pod", "-n", "work", left["metadata"]["name"])
        cluster.await_that(lambda: "class gpu: 1 asked" in cluster.kubectl(*words), "words")
        cluster.kubectl("delete", "pod", "-n", "work", "--all", "--wait=false")
        cluster.await_that(lambda: real.told_by_ledger(database) == {}, "devices given back")


def test_devices_of_drivers_are_bound_with_their_claims(
    own_cluster: Cluster, database: str
) -> None:
    cluster = own_cluster
    real.install(cluster)
    cluster.apply(real.class_object("gpu"), device_class("mapped", "example.com/accelerator"))
    cluster.add_nodes(2)
    cluster.apply(slice_object("node-0", "g0"), slice_object("node-1", "g1"))
    cluster.make_namespace("work")
    with extended(cluster, database):
        names = ("one", "two")
        pods = [real.pod_object(name, "work", {"gpu": 1}, "default-scheduler") for name in names]
        real.create(cluster, pods)
        cluster.await_that(lambda: real.bound(cluster, "work") == 2, "pods with nodes", 60)
        held = allocated(cluster)
        assert sorted(held) == sorted(claim_name(cluster, name) for name in names)
        assert sorted(device for each in held.values() for device in each) == ["g0", "g1"]
        both = real.pod_object("both", "work", {"gpu": 1}, "default-scheduler")
        for side in both["spec"]["containers"][0]["resources"].values():
            side["example.com/accelerator"] = "1"
        real.create(cluster, [both])
        cluster.await_that(lambda: bool(words(cluster, "both")), "words", 60)
        assert sorted(allocated(cluster)) == sorted(held)
