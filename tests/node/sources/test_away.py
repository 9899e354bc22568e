"""While the kubelet cannot be asked: what stands in for it, and who is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Pod, Sandbox
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.sources import runtime as told_by_runtime
from dovetail.node.sources.away import PodsWhileAway
from dovetail.node.sources.kubelet import KubeletAway
from dovetail.node.sources.pod_memory import PodMemory
from dovetail.node.sources.static_pods import StaticPods
from tests.support.node.fakes import FakeSource, Node, Pieces, container, pod, sandbox

STATIC = {"kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "h"}


class Kubelet(FakeSource):
    def __init__(self, *pods: Pod) -> None:
        super().__init__(*pods)
        self.away = False

    async def pod(self, sandbox: Sandbox) -> Pod | None:
        if self.away:
            raise KubeletAway("the kubelet answers with 401")
        return await super().pod(sandbox)

    async def active(self) -> Sequence[Pod] | None:
        return None if self.away else await super().active()


def manifest(name: str, cpu: str = "1", **more: Any) -> str:
    resources = {"requests": {"cpu": cpu}}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "kube-system", **more},
            "spec": {"containers": [{"name": "main", "resources": resources}]},
        }
    )


def static(name: str, **annotations: str) -> Sandbox:
    return Sandbox(
        uid="h",
        namespace="kube-system",
        name=name,
        annotations={**STATIC, **annotations},
        labels={"tier": "control-plane"},
    )


class World:
    def __init__(self, directory: Path, *pods: Pod, **more: Any) -> None:
        self.kubelet, self.manifests = Kubelet(*pods), directory / "manifests"
        self.manifests.mkdir(exist_ok=True)
        self.memory = directory / "known.json"
        self.source = self.again(**more)

    def again(self, **more: Any) -> PodsWhileAway:
        """As after a restart of the agent."""
        static_pods = StaticPods(self.manifests, "node-1")
        return PodsWhileAway(self.kubelet, PodMemory(self.memory), static_pods, **more)


async def test_as_long_as_it_answers_it_is_believed(tmp_path: Path) -> None:
    own = pod("a", container(cpu=1))
    world = World(tmp_path, own)
    assert await world.source.pod(sandbox("a")) == own
    assert await world.source.pod(sandbox("b")) is None
    assert await world.source.active() == [own]


@pytest.mark.parametrize("restarted", [False, True])
async def test_what_it_told_before_counts(tmp_path: Path, restarted: bool) -> None:
    own = pod(
        "a",
        container(cpu="1.5", memory=2**30, limits={"cpu": 2}),
        requests={"cpu": Fraction(7, 3)},
        annotations={"kubernetes.io/pod-role": "own"},
        qos_class="Burstable",
    )
    world = World(tmp_path, own)
    await world.source.active()
    world.kubelet.away = True
    source = world.again() if restarted else world.source
    assert await source.pod(sandbox("a")) == own
    assert await source.active() is None, "so nothing is released"


async def test_a_pod_that_came_since_the_last_list_is_known_too(tmp_path: Path) -> None:
    own = pod("a", container(cpu=1))
    world = World(tmp_path, own)
    await world.source.pod(sandbox("a"))
    world.kubelet.away = True
    assert await world.source.pod(sandbox("a")) == own


async def test_a_file_of_pods_that_makes_no_sense_is_done_without(tmp_path: Path) -> None:
    own = pod("a", container(cpu=1))
    world = World(tmp_path, own)
    world.memory.write_text('[{"uid": 5}]')
    source = world.again()
    await source.active()
    world.kubelet.away = True
    assert await world.again().pod(sandbox("a")) == own


async def test_the_file_has_no_more_than_is_gone_by(tmp_path: Path) -> None:
    applied = {"kubectl.kubernetes.io/last-applied-configuration": "secret", "role": "a"}
    own = pod("a", container(cpu=1), annotations=applied)
    world = World(tmp_path, own, pod("bad"))
    await asyncio.gather(*(world.source.active() for _ in range(5)))
    assert "secret" not in world.memory.read_text()
    assert "role" in world.memory.read_text()
    written = world.memory.stat().st_ino
    await world.source.active()
    assert world.memory.stat().st_ino == written, "nothing is written while nothing changes"
    assert [each["uid"] for each in json.loads(world.memory.read_text())] == ["a"]


async def test_static_pods_are_what_their_manifests_say(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.manifests / "apiserver.manifest").write_text(manifest("kube-apiserver", "2"))
    (world.manifests / ".kube-apiserver.swp").write_text("?")
    (world.manifests / "broken.yaml").write_text("{")
    world.kubelet.away = True
    found = await world.source.pod(static("kube-apiserver-node-1", a="b"))
    assert found
    assert (found.uid, found.name) == ("h", "kube-apiserver-node-1")
    assert found.annotations == {**STATIC, "a": "b"}
    assert found.labels == {"tier": "control-plane"}
    assert found.containers[0].requests == {"cpu": 2}


async def test_a_node_by_another_name_is_no_hindrance(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.manifests / "a.yaml").write_text(manifest("etcd"))
    world.kubelet.away = True
    assert await world.source.pod(static("etcd-elsewhere"))


async def test_of_several_manifests_the_one_with_the_nodes_name_is_meant(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.manifests / "a.yaml").write_text(manifest("web", "1"))
    (world.manifests / "b.yaml").write_text(manifest("web-a", "2"))
    world.kubelet.away = True
    found = await world.source.pod(static("web-a-node-1"))
    assert found
    assert found.containers[0].requests == {"cpu": 2}
    with pytest.raises(AdmissionRejected, match=r"could be the pod of .*a.yaml.* and .*b.yaml"):
        await world.source.pod(static("web-a-elsewhere"))
    (world.manifests / "b.yaml").write_text(manifest("web", "1"))
    assert await world.source.pod(static("web-elsewhere")), "they say the same"


@pytest.mark.parametrize(
    "sandbox",
    [
        static("other-node-1"),
        static("web-node-1", **{"kubernetes.io/config.source": "api"}),
        Sandbox(uid="x", namespace="kube-system", name="web-node-1"),
    ],
    ids=["no manifest", "no static pod", "nothing said"],
)
async def test_others_are_refused_with_the_reason(tmp_path: Path, sandbox: Sandbox) -> None:
    world = World(tmp_path)
    (world.manifests / "a.yaml").write_text(manifest("web"))
    world.kubelet.away = True
    with pytest.raises(
        AdmissionRejected, match=r"401; it did not tell of .*pods.strangers"
    ) as caught:
        await world.source.pod(sandbox)
    assert (caught.value.reason, caught.value.later) == ("pod_unknown", True)


async def test_unless_they_are_to_start_by_what_the_runtime_is_told(tmp_path: Path) -> None:
    world = World(tmp_path, strangers_start=True)
    world.kubelet.away = True
    asked = ContainerSettings(numbers={"CpuShares": 2048, "OomScoreAdj": -997})
    found = await world.source.pod(sandbox("a"))
    assert found
    assert found.containers == ()
    found = await world.source.pod(told_by_runtime.creating(sandbox("a"), "main", asked, ()))
    assert found
    assert [each.requests for each in found.containers] == [{"cpu": 2}]
    assert found.qos_class == "Guaranteed"


async def test_no_directory_of_manifests(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.manifests.rmdir()
    world.kubelet.away = True
    with pytest.raises(AdmissionRejected, match="did not tell"):
        await world.source.pod(static("web-node-1"))


async def test_pods_are_pinned_again_and_nothing_is_released(tmp_path: Path) -> None:
    """The whole of it: a sandbox that is made anew, and a stranger by what the runtime is told."""
    own = pod("a", container(cpu=2))
    world = World(tmp_path, own, strangers_start=True)
    node = Node(tmp_path, [Pieces()], [])
    node.manager.gate._source = node.manager.collector._source = world.source
    assert await node.start(own) == {"main": "0-1"}
    world.kubelet.away = True
    assert await node.start(own) == {"main": "0-1"}
    asked = ContainerSettings(numbers={"CpuShares": 1024})
    await node.manager.admit_pod(sandbox("b"))
    given = await node.manager.admit_container(sandbox("b"), "main", asked)
    assert given.cpus == "2"
