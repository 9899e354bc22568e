"""Claims on a real control plane: accepted, collected, and respected by kube-scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.kube.scheduler import real
from tests.kube.scheduler.dra.real_claims import (
    allocated,
    claim_name,
    claim_object,
    claims,
    device_class,
    is_bound,
    pod,
    pod_with_claim,
    slice_object,
    words,
)
from tests.support.kube.cluster import OK, Cluster
from tests.support.processes import Process


@contextmanager
def prepared(cluster: Cluster, database: str, *flags: str) -> Iterator[Process]:
    """Two nodes with a device each, both schedulers, and the controllers of claims and pods."""
    real.install(cluster)
    cluster.start_resource_claims()
    cluster.apply(real.class_object("gpu"), device_class("any"))
    cluster.add_nodes(2)
    cluster.apply(slice_object("node-0", "g0"), slice_object("node-1", "g1"))
    cluster.make_namespace("work")
    cluster.start_scheduler()
    with real.scheduler(cluster, database, "scheduler", *flags) as process:
        cluster.await_that(lambda: real.is_ready(process), "scheduler", 60)
        yield process


def test_either_scheduler_leaves_the_others_devices_alone(
    own_cluster: Cluster, database: str
) -> None:
    cluster = own_cluster
    with prepared(cluster, database):
        # 1. One device each.
        real.create(cluster, [real.pod_object("ours", "work", {"gpu": 1})])
        cluster.await_that(lambda: is_bound(cluster, "ours"), "our pod with a node", 60)
        cluster.apply(claim_object("theirs", "any"))
        real.create(cluster, [pod_with_claim("their-pod", "theirs")])
        cluster.await_that(lambda: is_bound(cluster, "their-pod"), "their pod with a node", 60)
        mine = claim_name(cluster, "ours")
        held = allocated(cluster)
        assert sorted(held) == sorted([mine, "theirs"])
        assert sorted(held[mine] + held["theirs"]) == ["g0", "g1"]
        # 2. There is none for anybody else.
        cluster.apply(claim_object("late", "any"))
        real.create(
            cluster,
            [pod_with_claim("their-late", "late"), real.pod_object("our-late", "work", {"gpu": 1})],
        )
        cluster.await_that(lambda: "held by" in words(cluster, "our-late"), "words", 60)
        cluster.await_that(lambda: bool(words(cluster, "their-late")), "words of theirs", 60)
        assert not is_bound(cluster, "our-late")
        assert not is_bound(cluster, "their-late")
        # 3. What kube-scheduler's pod gave back is ours.
        drop = ("delete", "pod", "-n", "work", "--wait=false")
        cluster.kubectl("delete", "resourceclaim", "-n", "work", "late", "--wait=false")
        cluster.kubectl(*drop, "their-late")
        cluster.kubectl(*drop, "their-pod")
        cluster.await_that(lambda: is_bound(cluster, "our-late"), "our second pod's node", 60)
        # 4. What ours gives back is kube-scheduler's, and its claim goes with it.
        cluster.apply(claim_object("last", "any"))
        real.create(cluster, [pod_with_claim("their-last", "last")])
        cluster.kubectl(*drop, "ours")
        cluster.await_that(lambda: is_bound(cluster, "their-last"), "their last pod's node", 120)
        assert mine not in allocated(cluster)
        cluster.await_that(
            lambda: mine not in {each["metadata"]["name"] for each in claims(cluster)}, "end", 60
        )


def test_claims_go_with_their_pods_bound_or_not(own_cluster: Cluster, database: str) -> None:
    cluster = own_cluster
    with prepared(cluster, database):
        body = real.pod_object("done", "work", {"gpu": 1})
        real.create(cluster, [body, real.pod_object("other", "work", {"gpu": 1})])
        cluster.await_that(lambda: real.bound(cluster, "work") == 2, "pods with nodes", 60)
        assert len(allocated(cluster)) == 2
        # It is over, and stays as an object.
        over = {"status": {"phase": "Succeeded"}}
        path = "/api/v1/namespaces/work/pods/done/status"
        assert cluster.request("PATCH", path, over)[0] == OK
        cluster.await_that(lambda: len(claims(cluster)) == 1, "one claim", 60)
        real.create(cluster, [real.pod_object("next", "work", {"gpu": 1})])
        cluster.await_that(lambda: is_bound(cluster, "next"), "the next pod's node", 60)
        cluster.kubectl("delete", "pod", "-n", "work", "--all", "--wait=false")
        cluster.await_that(lambda: not claims(cluster), "end of all claims", 60)
        cluster.await_that(lambda: real.told_by_ledger(database) == {}, "an empty ledger", 60)


def test_containers_classes_and_counts_of_every_kind_are_accepted(
    own_cluster: Cluster, database: str
) -> None:
    cluster = own_cluster
    real.install(cluster)
    cluster.apply(real.class_object("gpu"), real.class_object("nic", kind="nic"))
    cluster.add_nodes(1)
    gpus = slice_object("node-0", *(f"g{number}" for number in range(5)))
    nics = slice_object("node-0", "n0", "n1", driver="nic.example.com")
    for each in nics["spec"]["devices"]:
        each["attributes"]["kind"]["string"] = "nic"
    cluster.apply(gpus, nics)
    cluster.make_namespace("work")
    body = real.pod_object("p", "work", {"gpu": 2, "nic": 1})
    (main,) = body["spec"]["containers"]
    one = real.pod_object("x", "work", {"gpu": 1})["spec"]["containers"][0]
    body["spec"]["containers"] = [main, {**one, "name": "second"}]
    body["spec"]["initContainers"] = [
        {**one, "name": "side", "restartPolicy": "Always"},
        {**main, "name": "early"},
    ]
    with real.scheduler(cluster, database, "scheduler") as process:
        cluster.await_that(lambda: real.is_ready(process), "scheduler", 60)
        real.create(cluster, [body])
        cluster.await_that(lambda: is_bound(cluster, "p"), "a node", 60)
    told = pod(cluster, "p")["status"]["extendedResourceClaimStatus"]
    (claim,) = claims(cluster)
    assert told["resourceClaimName"] == claim["metadata"]["name"]
    results = claim["status"]["allocation"]["devices"]["results"]
    devices = {each["request"]: each["device"] for each in results}
    inside: dict[str, set[str]] = {}
    for each in told["requestMappings"]:
        inside.setdefault(each["containerName"], set()).add(devices[each["requestName"]])
    assert {name: len(found) for name, found in inside.items()} == {
        "main": 3,
        "second": 1,
        "side": 1,
        "early": 3,
    }
    assert not inside["side"] & (inside["main"] | inside["second"] | inside["early"])
    assert not inside["main"] & inside["second"]
    assert inside["early"] <= inside["main"] | inside["second"]


def test_a_pod_that_asks_for_a_device_class_too_is_told(
    own_cluster: Cluster, database: str
) -> None:
    cluster = own_cluster
    with prepared(cluster, database):
        cluster.apply(device_class("mapped", "example.com/accelerator"))
        body = real.pod_object("both", "work", {"gpu": 1})
        for side in body["spec"]["containers"][0]["resources"].values():
            side["example.com/accelerator"] = "1"
        real.create(cluster, [body])
        cluster.await_that(
            lambda: "DeviceClass 'mapped'" in words(cluster, "both"), "the reason", 60
        )
        assert not claims(cluster)
