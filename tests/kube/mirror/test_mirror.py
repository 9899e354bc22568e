"""The mirror on clusters in memory: the ledger has what they have, whatever happens to them."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from dovetail.core.claim import Claim
from dovetail.intents.fleet import ClusterHealth, ClusterInventory
from dovetail.kube.api.port import ApiError, ApiUnreachable
from dovetail.kube.mirror.cpu_policies import KubeletConfigz
from dovetail.ledger import Ledger, Transaction, claims, providers
from dovetail.ledger.intents.node_names import consumer_uuid, root_uuid
from dovetail.podfit.objects import KubeObject, Node, Pod, ResourceClass, ResourceSlice
from dovetail.service.leases import LeaseDurations, LedgerLease
from tests.kube.mirror.rig import Rig, add_node, add_pod, node_body, told, write
from tests.support.kube.memory import MemoryApi, failing

C1, C2 = "p1+c1", "p1+c2"
READY, AWAY, STALE = ClusterHealth.READY, ClusterHealth.AWAY, ClusterHealth.STALE


async def test_nodes_and_pods_come_change_and_go(ledger: Ledger) -> None:
    rig = Rig(ledger)
    api = rig.server(b"one")
    await add_node(api, "n1")
    await add_pod(api, "web", "n1")
    await rig.register(C1, b"one")
    async with rig.running():
        found = await rig.seen(C1, lambda each: each.state is READY)
        assert told(found) == {"n1": (["web"], 1000)}
        assert found.observed_at > 0
        await add_node(api, "n2", "4")
        await add_pod(api, "job", "n2", "2")
        await rig.seen(C1, lambda each: told(each).get("n2") == (["job"], 2000))
        await api.merge(Node, "n2", {"spec": {"unschedulable": True}})
        await rig.seen(C1, lambda each: each.nodes[-1].node.spec.unschedulable)
        await api.merge(
            Pod, "job", {"status": {"phase": "Succeeded"}}, namespace="default", sub="status"
        )
        await rig.seen(C1, lambda each: told(each)["n2"] == ([], 0))
        await api.delete(Pod, "web", "default", grace=0)
        await api.delete(Node, "n2")
        await rig.seen(C1, lambda each: told(each) == {"n1": ([], 0)})


async def test_a_node_that_is_deleted_and_back_is_as_it_is_then(ledger: Ledger) -> None:
    rig = Rig(ledger)
    api = rig.server(b"one")
    await add_node(api, "n1")
    await add_pod(api, "web", "n1")
    await rig.register(C1, b"one")
    async with rig.running():
        await rig.seen(C1, lambda each: bool(each.nodes))
        await write(
            ledger,
            lambda tx: claims.replace(
                tx,
                [
                    Claim(
                        consumer=consumer_uuid("d1", "fwall", C1),
                        project="p",
                        user="u",
                        allocations={root_uuid(C1, "n1"): {"CUSTOM_MILLICPU": 500}},
                    )
                ],
            ),
        )
        await api.delete(Node, "n1")
        await rig.seen(C1, lambda each: not each.nodes)
        await add_node(api, "n1", "2")
        found = await rig.seen(C1, lambda each: bool(each.nodes))
        assert told(found) == {"n1": (["web"], 1500)}
        assert found.nodes[0].node.status.allocatable["cpu"] == "2"


async def test_a_burst_of_pods_is_written_once(ledger: Ledger) -> None:
    rig = Rig(ledger)
    api = rig.server(b"one")
    await add_node(api, "n1")
    await rig.register(C1, b"one")
    async with rig.running():
        await rig.seen(C1, lambda each: each.state is READY)
        before = ledger.read(lambda tx: tx.row("SELECT max(seq) FROM changes")).result()
        for number in range(200):
            await add_pod(api, f"web-{number}", "n1", "10m")
        await rig.seen(C1, lambda each: len(each.nodes[0].pods) == 200)
        after = ledger.read(lambda tx: tx.row("SELECT max(seq) FROM changes")).result()
        assert before is not None
        assert after is not None
        assert after[0] - before[0] < 60, "far fewer writes than pods"


async def test_cuts_and_gaps_of_watches_leave_nothing_behind(ledger: Ledger) -> None:
    rig = Rig(ledger)
    api = rig.server(b"one")
    await add_node(api, "n1")
    await rig.register(C1, b"one")
    async with rig.running():
        await rig.seen(C1, lambda each: each.state is READY)
        for turn, trouble in enumerate((api.cut, api.close, api.expire, api.compact)):
            await add_pod(api, f"web-{turn}", "n1")
            trouble()
            await add_pod(api, f"job-{turn}", "n1")
            await api.delete(Pod, f"web-{turn}", "default", grace=0)
            jobs = [f"job-{each}" for each in range(turn + 1)]
            expected = {"n1": (jobs, 1000 * len(jobs))}
            await rig.seen(C1, partial(is_told, expected=expected))


def is_told(found: ClusterInventory, expected: dict[str, tuple[list[str], int]]) -> bool:
    return told(found) == expected


async def test_a_cluster_restored_from_a_backup_is_as_it_was_then(ledger: Ledger) -> None:
    rig = Rig(ledger)
    api = rig.server(b"one")
    await add_node(api, "n1")
    await add_pod(api, "web", "n1")
    restore = api.backup()
    await rig.register(C1, b"one")
    async with rig.running():
        await add_pod(api, "job", "n1")
        await add_node(api, "n2")
        await rig.seen(C1, lambda each: len(each.nodes) == 2 and told(each)["n1"][1] == 2000)
        restore()
        await rig.seen(C1, lambda each: told(each) == {"n1": (["web"], 1000)})


async def test_a_cluster_that_does_not_answer_is_told_and_comes_back(ledger: Ledger) -> None:
    rig = Rig(ledger)
    for number, cluster in enumerate((C1, C2), 1):
        api = rig.server(b"%d" % number)
        await add_node(api, "n1")
        await rig.register(
            cluster, b"%d" % number, **({"unreachable": "lastKnown"} if number == 2 else {})
        )
    async with rig.running():
        for cluster in (C1, C2):
            await rig.seen(cluster, lambda each: each.state is READY)
        for api in rig.servers.values():
            api.before = failing(
                lambda: ApiUnreachable("connection refused"), {"list one", "list", "watch"}
            )
            api.cut()
        away = await rig.seen(C1, lambda each: each.state is AWAY)
        assert away.why == "connection refused"
        assert away.nodes, "what is known of it is there, and its age"
        stale = await rig.seen(C2, lambda each: each.state is STALE)
        assert stale.observed_at == (await rig.snapshot()).clusters[C2].observed_at
        for api in rig.servers.values():
            api.before = None
            await add_pod(api, "meanwhile", "n1")
        for cluster in (C1, C2):
            await rig.seen(
                cluster, lambda each: each.state is READY and told(each)["n1"][1] == 1000
            )


async def test_a_server_that_hangs_is_away(ledger: Ledger) -> None:
    rig = Rig(ledger)
    api = rig.server(b"one")
    await add_node(api, "n1")
    await rig.register(C1, b"one")
    async with rig.running():
        await rig.seen(C1, lambda each: each.state is READY)

        async def hang(verb: str, kind: type[KubeObject], name: str) -> None:
            await asyncio.Event().wait()

        api.before = hang
        away = await rig.seen(C1, lambda each: each.state is AWAY)
        assert away.why == "no answer within 0.2 s"
        api.before = None
        await rig.seen(C1, lambda each: each.state is READY)


async def test_a_kubeconfig_that_cannot_be_used_is_told(ledger: Ledger) -> None:
    rig = Rig(ledger)
    await rig.register(C1, b"unknown")
    async with rig.running():
        found = await rig.seen(C1, lambda each: bool(each.why) and "form" in each.why)
        assert found.state is not READY


async def test_a_cluster_registered_with_another_kubeconfig_has_the_nodes_of_that_one(
    ledger: Ledger,
) -> None:
    rig = Rig(ledger)
    for name, kubeconfig in (("n1", b"one"), ("n2", b"two")):
        await add_node(rig.server(kubeconfig), name)
    await rig.register(C1, b"one")
    async with rig.running():
        await rig.seen(C1, lambda each: list(told(each)) == ["n1"])
        await rig.seen(C1, lambda each: each.state is READY)
        await rig.register(C1, b"two")
        assert (await rig.snapshot()).clusters[C1].state is not READY, "it may be another one"
        found = await rig.seen(C1, lambda each: each.state is READY)
        assert list(told(found)) == ["n2"]
        await add_node(rig.server(b"one"), "n3")
        await add_node(rig.server(b"two"), "n4")
        await rig.seen(C1, lambda each: list(told(each)) == ["n2", "n4"])


async def test_clusters_that_are_dropped_leave_the_ledger_and_stay_out_of_it(
    ledger: Ledger,
) -> None:
    rig = Rig(ledger)
    api = rig.server(b"one")
    await add_node(api, "n1")
    await rig.register(C1, b"one")
    await rig.register(C2, b"one")
    async with rig.running():
        for cluster in (C1, C2):
            await rig.seen(cluster, lambda each: each.state is READY)
        await rig.drop(C1)
        await add_node(api, "n2")
        await rig.seen(C2, lambda each: len(each.nodes) == 2)
        rows = ledger.read(lambda tx: tx.rows("SELECT name FROM providers ORDER BY name")).result()
        assert [name for (name,) in rows] == ["p1+c2/n1", "p1+c2/n2"]
        assert list((await rig.snapshot()).clusters) == [C2]


async def test_a_mirror_that_was_killed_goes_on_where_things_are_by_then(ledger: Ledger) -> None:
    rig = Rig(ledger)
    api = rig.server(b"one")
    await add_node(api, "n1")
    await add_node(api, "n2")
    await rig.register(C1, b"one")
    async with rig.running():
        await rig.seen(C1, lambda each: each.state is READY)
    await api.delete(Node, "n2")
    await add_pod(api, "web", "n1")
    await add_node(api, "n3")
    async with rig.running():
        await rig.seen(C1, lambda each: told(each) == {"n1": (["web"], 1000), "n3": ([], 0)})


async def test_a_mirror_that_lost_its_lease_writes_nothing(ledger: Ledger) -> None:
    rig = Rig(ledger)
    api = rig.server(b"one")
    await add_node(api, "n1")
    await rig.register(C1, b"one")
    durations = LeaseDurations(lease_seconds=9, hold_seconds=6, retry_seconds=3)
    lease = LedgerLease(ledger, "mirror", "one", durations)
    assert await lease._try()
    async with rig.running(lease.fenced):
        await rig.seen(C1, lambda each: each.state is READY)

        def usurp(tx: Transaction) -> None:
            tx.run("UPDATE leases SET holder = 'two' WHERE name = 'mirror'")

        await write(ledger, usurp)
        await add_node(api, "n2")
        await asyncio.sleep(0.3)
        assert list(told((await rig.snapshot()).clusters[C1])) == ["n1"]


async def test_a_ledger_that_fails_for_a_while_gets_everything_in_the_end(ledger: Ledger) -> None:
    rig = Rig(ledger)
    api = rig.server(b"one")
    await add_node(api, "n1")
    await rig.register(C1, b"one")
    failures = 0

    def fence(operation: Any) -> Any:
        def unsteady(tx: Transaction) -> None:
            nonlocal failures
            operation(tx)
            if failures < 6:
                failures += 1
                raise ApiError(0, "Broken", "the disk is full")

        return unsteady

    async with rig.running(fence):
        await rig.seen(C1, lambda each: each.state is READY and list(told(each)) == ["n1"])
        assert failures == 6


async def test_a_node_that_the_ledger_cannot_take_keeps_no_others_out(ledger: Ledger) -> None:
    rig = Rig(ledger)
    api = rig.server(b"one")
    for number in range(4):
        await add_node(api, f"n{number}")
    mine = "00000000-0000-0000-0000-000000000001"
    await write(ledger, lambda tx: providers.create(tx, "p1+c1/n2", mine, None))
    await rig.register(C1, b"one")
    async with rig.running():
        found = await rig.seen(C1, lambda each: each.state is READY)
        assert list(told(found)) == ["n0", "n1", "n3"]
        await write(ledger, lambda tx: providers.delete(tx, mine))
        await api.merge(Node, "n2", {"metadata": {"labels": {"a": "b"}}})
        await rig.seen(C1, lambda each: len(each.nodes) == 4)


async def test_devices_classes_and_cpu_policies_are_told(ledger: Ledger) -> None:
    rig = Rig(ledger)
    api = rig.server(b"one")
    for name in ("n1", "n2"):
        await add_node(api, name)
    spec = {
        "resourceSelector": [
            {"matchExpressions": [{"key": "Kind", "operator": "In", "values": ["gpu"]}]}
        ]
    }
    await api.create(ResourceClass, {"metadata": {"name": "fast"}, "spec": spec})
    slice_body = {
        "metadata": {"name": "n1-gpus"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}}}],
        },
    }
    await api.create(ResourceSlice, slice_body)
    configz = {
        "metadata": {"name": "n1/proxy/configz"},
        "kubeletconfig": {"cpuManagerPolicy": "static"},
    }
    await api.create(KubeletConfigz, configz)
    await rig.register(C1, b"one")
    async with rig.running():
        found = await rig.seen(C1, lambda each: any(one.pins_cpus for one in each.nodes))
        assert list(found.classes) == ["fast"]
        (one, two) = found.nodes
        assert [each.name for each in one.devices] == ["gpu.example.com.n1.gpu-0"]
        assert one.devices_by_claim
        assert (one.pins_cpus, two.pins_cpus) == (True, None)
        await api.delete(ResourceClass, "fast")
        await rig.seen(C1, lambda each: not each.classes)


async def test_a_cluster_without_our_kinds_is_followed_all_the_same(ledger: Ledger) -> None:
    rig = Rig(ledger)
    api = rig.server(b"one")
    await add_node(api, "n1")

    async def absent(verb: str, kind: type[KubeObject], name: str) -> None:
        if kind not in (Node, Pod):
            raise ApiError(404, "NotFound", "the server could not find the requested resource")

    api.before = absent
    await rig.register(C1, b"one")
    async with rig.running():
        await rig.seen(C1, lambda each: each.state is READY)
        api.before = None
        await api.create(ResourceClass, {"metadata": {"name": "fast"}, "spec": {"members": []}})
        spec = {"resourceSelector": [{"matchExpressions": [{"key": "Kind", "operator": "Exists"}]}]}
        await api.create(ResourceClass, {"metadata": {"name": "any"}, "spec": spec})
        await rig.seen(C1, lambda each: "any" in each.classes)


async def test_fifty_clusters_with_equal_names_of_nodes_are_fifty(ledger: Ledger) -> None:
    rig = Rig(ledger)
    for number in range(50):
        api = MemoryApi()
        rig.servers[b"%d" % number] = api
        await api.create(Node, node_body("n1", str(number + 1)))
        await rig.register(f"p1+c{number}", b"%d" % number)
    async with rig.running():
        for number in range(50):
            found = await rig.seen(f"p1+c{number}", lambda each: each.state is READY)
            assert found.nodes[0].node.status.allocatable["cpu"] == str(number + 1)
