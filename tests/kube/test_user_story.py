"""The specification's user story and its six flows, on a real cluster, seen as a user sees them.

Numbers are those of `kubectl get resourceclasses`: Allocatable, Requested, Available. First comes
the tour of docs/resource-classes.md, which wants a cluster where nothing has happened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import yaml

from dovetail.devices.allocation_document import ALLOCATION
from dovetail.kube.classes.node_annotation import DEVICES
from tests.kube.conftest import needs_kubernetes
from tests.kube.demo import CLASSES, a_demo_cluster, gpu, nic
from tests.kube.tour import PAGE
from tests.support.kube.cluster import node_object
from tests.support.kube.tour import Demo, played, without_varying

KEY = "resourceclass.dovetail.dev/"
RESOURCE_CLASSES = "/apis/dovetail.dev/v1alpha1/resourceclasses"
Numbers = tuple[int, int, int]


class Story:
    """What the administrator and the user of the story do, and what they see."""

    def __init__(self, demo: Demo) -> None:
        self.cluster = demo.cluster
        self.kubectl = demo.cluster.kubectl

    def create_classes(self, *names: str) -> None:
        wanted = [each for each in yaml.safe_load_all(CLASSES) if each["metadata"]["name"] in names]
        self.cluster.apply(*wanted)

    def numbers(self, name: str) -> Numbers | None:
        told = self.kubectl("get", "resourceclasses", "--no-headers").splitlines()
        rows = {row[0]: row[1:4] for row in map(str.split, told) if len(row) > 4}
        if name not in rows:
            return None
        allocatable, requested, available = map(int, rows[name])
        return allocatable, requested, available

    def await_numbers(self, name: str, *expected: int) -> None:
        def written() -> bool:
            found = self.cluster.request("GET", f"{RESOURCE_CLASSES}/{name}")[1]
            status = json.loads(found).get("status") or {}
            return (status.get("allocatable"), status.get("requested")) == expected[:2]

        with suppress(TimeoutError):
            self.cluster.await_that(written, "such numbers")
        assert self.numbers(name) == expected

    def create_pod(self, name: str, **classes: int) -> None:
        amounts = {KEY + each.replace("_", "."): str(count) for each, count in classes.items()}
        resources = {"requests": amounts, "limits": amounts}
        container = {"name": "main", "image": "any", "resources": resources}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"schedulerName": "dovetail", "containers": [container]},
        }
        self.kubectl("create", "-f", "-", given=pod)

    def pod(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", "pod", name, "-o", "json"))
        return found

    def await_node(self, name: str) -> str:
        scheduled = ("wait", "--for=condition=PodScheduled", f"pod/{name}", "--timeout=30s")
        self.kubectl(*scheduled)
        node: str = self.pod(name)["spec"]["nodeName"]
        return node

    def devices(self, name: str) -> set[tuple[str, str, int]]:
        """Class, device and units, as the scheduler wrote them on the pod."""
        told = json.loads(self.pod(name)["metadata"]["annotations"][ALLOCATION])
        return {(each["class"], each["device"], each["units"]) for each in told["devices"]}

    def await_waiting(self, name: str) -> str:
        """Until the scheduler says that it fits nowhere; why."""
        where = '{.status.conditions[?(@.type=="PodScheduled")].%s}'
        path = f"/api/v1/namespaces/default/pods/{name}"
        unschedulable = b'"Unschedulable"'
        self.cluster.await_that(
            lambda: unschedulable in self.cluster.request("GET", path)[1], "refusal"
        )
        return self.kubectl("get", "pod", name, "-o", f"jsonpath={where % 'message'}")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    needs_kubernetes()
    with a_demo_cluster(tmp_path_factory.mktemp("story")) as running:
        yield running


@pytest.fixture
def story(demo: Demo) -> Iterator[Story]:
    """On the demo's three nodes, with no class and no pod."""
    yield Story(demo)
    demo.cluster.kubectl("delete", "pods", "--all", "--timeout=30s")
    demo.cluster.kubectl("delete", "resourceclasses", "--all", "--timeout=30s")


@pytest.mark.usefixtures("story")
def test_everything_the_tour_shows_is_what_is_printed(demo: Demo) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert without_varying(played(PAGE, demo)) == without_varying(page)
    assert page.count("    $ kubectl ") >= 8


def test_the_user_story(story: Story) -> None:
    """Steps 1 to 6."""
    story.create_classes("nvidia.high.mem", "fast.nic")
    story.await_numbers("nvidia.high.mem", 3, 0, 3)
    story.await_numbers("fast.nic", 2, 0, 2)
    # 1. A user submits a pod that asks for two classes.
    story.create_pod("trainer", nvidia_high_mem=2, fast_nic=1)
    # 2. Nodes that do not match are filtered: big-2 has one such GPU, small-1 none.
    assert story.await_node("trainer") == "big-1"
    # 3. A device is selected for each class, and the pod is annotated.
    assert story.devices("trainer") == {
        ("nvidia.high.mem", "gpu-0", 1),
        ("nvidia.high.mem", "gpu-1", 1),
        ("fast.nic", "eth0", 1),
    }
    annotations = story.pod("trainer")["metadata"]["annotations"]
    # 4. This is what a kubelet reads.
    assert annotations["scheduler.alpha.kubernetes.io/resClass_nvidia.high.mem_gpu-0"] == "1"
    assert annotations["scheduler.alpha.kubernetes.io/resClass_fast.nic_eth0"] == "1"
    story.await_numbers("nvidia.high.mem", 3, 2, 1)
    story.await_numbers("fast.nic", 2, 1, 1)
    # 5. and 6. The user deletes the pod, and its devices are free.
    story.kubectl("delete", "pod", "trainer", "--timeout=30s")
    story.await_numbers("nvidia.high.mem", 3, 0, 3)
    story.await_numbers("fast.nic", 2, 0, 2)


def test_class_creation_counts_what_pods_hold_already(story: Story) -> None:
    story.create_classes("nvidia.high.mem")
    story.create_pod("first", nvidia_high_mem=1)
    story.await_node("first")
    selector = [{"matchExpressions": [{"key": "Kind", "operator": "Eq", "values": ["nvidia-gpu"]}]}]
    story.cluster.apply(
        {
            "apiVersion": "dovetail.dev/v1alpha1",
            "kind": "ResourceClass",
            "metadata": {"name": "any.gpu"},
            "spec": {"resourceSelector": selector},
        }
    )
    story.await_numbers("any.gpu", 5, 1, 4)


def test_class_deletion_leaves_devices_with_their_pods(story: Story) -> None:
    story.create_classes("nvidia.high.mem")
    story.create_pod("first", nvidia_high_mem=2)
    story.await_node("first")
    story.kubectl("delete", "resourceclass", "nvidia.high.mem")
    assert story.numbers("nvidia.high.mem") is None
    story.create_classes("nvidia.high.mem")
    story.await_numbers("nvidia.high.mem", 3, 2, 1)


def test_node_addition_and_deletion_change_what_there_is(story: Story) -> None:
    story.create_classes("nvidia.high.mem", "fast.nic")
    story.await_numbers("fast.nic", 2, 0, 2)
    devices = json.dumps([gpu(0, "80G"), nic("eth0", "200Gbps")])
    node = node_object("extra", annotations={DEVICES: devices})
    story.kubectl("create", "-f", "-", given=node)
    story.await_numbers("nvidia.high.mem", 4, 0, 4)
    story.await_numbers("fast.nic", 3, 0, 3)
    story.kubectl("delete", "node", "extra")
    story.await_numbers("nvidia.high.mem", 3, 0, 3)
    story.await_numbers("fast.nic", 2, 0, 2)


def test_pod_creation_is_refused_with_the_reason_and_done_when_there_is_room(story: Story) -> None:
    story.create_classes("nvidia.high.mem")
    story.create_pod("first", nvidia_high_mem=2)
    story.await_node("first")
    story.create_pod("second", nvidia_high_mem=2)
    why = story.await_waiting("second")
    assert "0/3 nodes are available" in why
    assert "nvidia.high.mem" in why
    story.kubectl("delete", "pod", "first", "--timeout=30s")
    assert story.await_node("second") == "big-1"


def test_a_pod_that_ends_by_itself_frees_its_devices(story: Story) -> None:
    story.create_classes("nvidia.high.mem")
    story.create_pod("short", nvidia_high_mem=2)
    story.await_node("short")
    story.await_numbers("nvidia.high.mem", 3, 2, 1)
    story.kubectl("annotate", "pod", "short", "test/end=Succeeded")
    story.await_numbers("nvidia.high.mem", 3, 0, 3)


def test_an_unhealthy_device_leaves_the_numbers_and_stays_with_its_pod(story: Story) -> None:
    story.create_classes("nvidia.high.mem")
    story.create_pod("first", nvidia_high_mem=2)
    assert story.await_node("first") == "big-1"
    before = story.kubectl("get", "node", "big-1", "-o", "json")
    devices = json.loads(json.loads(before)["metadata"]["annotations"][DEVICES])
    broken = [{**each, "healthy": each["name"] != "gpu-0"} for each in devices]
    annotate = ("annotate", "--overwrite", "node", "big-1")
    story.kubectl(*annotate, f"{DEVICES}={json.dumps(broken)}")
    story.await_numbers("nvidia.high.mem", 2, 1, 1)
    story.kubectl(*annotate, f"{DEVICES}={json.dumps(devices)}")
    story.await_numbers("nvidia.high.mem", 3, 2, 1)
