"""A pod that its node refused is failed, as the kubelet's own admission would; others never."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.kube.runtime.pod_failure import MOST_WRITES, REFUSED, fail_pod
from dovetail.podfit.objects import Pod
from tests.support.kube.memory import MemoryApi


async def a_pod(api: MemoryApi, phase: str = "Pending", **metadata: Any) -> str:
    body = {"metadata": {"name": "web", "namespace": "default", **metadata}}
    made = await api.create(Pod, body, namespace="default")
    assert made
    await api.merge(Pod, "web", {"status": {"phase": phase}}, namespace="default", sub="status")
    return made.metadata.uid


def failed(api: MemoryApi, uid: str) -> Any:
    about = {"reason": "UnexpectedAdmissionError", "message": "2 CPUs are wanted"}
    return fail_pod(api, namespace="default", name="web", uid=uid, **about)


async def test_status_and_annotation_are_one_write() -> None:
    """A status alone is put back by the kubelet, which looks again only when something else is
    new."""
    api = MemoryApi()
    uid = await a_pod(api)
    assert await failed(api, uid) is False, "it has to be looked at again"
    raw = api.raw(Pod, "web", "default")
    assert raw["status"]["phase"] == "Failed"
    assert raw["status"]["reason"] == "UnexpectedAdmissionError"
    assert raw["status"]["message"] == "2 CPUs are wanted"
    assert raw["metadata"]["annotations"][REFUSED] == "UnexpectedAdmissionError"
    assert await failed(api, uid) is True


async def test_one_that_was_put_back_is_failed_again() -> None:
    api = MemoryApi()
    uid = await a_pod(api)
    await failed(api, uid)
    before = api.raw(Pod, "web", "default")["metadata"]["annotations"]
    back = {"phase": "Pending", "reason": None, "message": None}
    await api.merge(Pod, "web", {"status": back}, namespace="default", sub="status")
    assert await failed(api, uid) is False
    raw = api.raw(Pod, "web", "default")
    assert raw["status"]["phase"] == "Failed"
    assert raw["metadata"]["annotations"] != before, "else the kubelet would see nothing new"


async def test_a_reason_that_the_kubelet_left_out_is_written_again_a_few_times() -> None:
    api = MemoryApi()
    uid = await a_pod(api)
    writes = 0
    while await failed(api, uid) is False:
        writes += 1
        bare = {"status": {"reason": None, "message": None}}
        await api.merge(Pod, "web", bare, namespace="default", sub="status")
    assert writes == MOST_WRITES
    assert api.raw(Pod, "web", "default")["status"]["phase"] == "Failed"


async def test_a_pod_that_failed_by_itself_gets_no_reason_of_ours() -> None:
    api = MemoryApi()
    uid = await a_pod(api, "Failed")
    assert await failed(api, uid) is True
    assert "reason" not in api.raw(Pod, "web", "default")["status"]


@pytest.mark.parametrize(
    "about",
    [
        {"phase": "Running"},
        {"annotations": {"kubernetes.io/config.mirror": "abc"}},
        {"annotations": {"kubernetes.io/config.source": "file"}},
    ],
)
async def test_pods_that_are_not_to_be_failed(about: dict[str, Any]) -> None:
    api = MemoryApi()
    uid = await a_pod(api, **about)
    before = api.raw(Pod, "web", "default")
    assert await failed(api, uid) is None
    assert api.raw(Pod, "web", "default") == before


async def test_another_of_that_name_is_left_alone() -> None:
    api = MemoryApi()
    assert await failed(api, "gone") is None
    await a_pod(api)
    assert await failed(api, "gone") is None
    assert api.raw(Pod, "web", "default")["status"]["phase"] == "Pending"
