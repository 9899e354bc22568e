"""Pods of an unmodified kubelet behind the proxy: all kinds of containers, from start to end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.node.kubelet.seen import (
    HALVES_SWAPPED,
    ON_FIRST,
    ON_SECOND,
    ONE_CPU_FREE,
    await_held,
    held,
    limits,
)
from tests.support.kube.cluster import OK
from tests.support.node.kubelet.bed import NodeBed, container_id, statuses
from tests.support.node.kubelet.pods import container_object, pod_object

UNTIL_TOLD = ("sh", "-c", "while ! [ -e /tmp/go ]; do sleep 0.1; done")
"""Ends when there is such a file in the container."""


def test_pods_are_pinned(bed: NodeBed) -> None:
    bed.run_pod("web", role="web")
    bed.run_pod("etl", role="etl")
    assert bed.pinned("web") == ON_FIRST
    assert bed.pinned("etl") == ON_SECOND
    assert "Cpus_allowed_list:\t1\n" in bed.exec("etl", "cat", "/proc/self/status")
    assert held(bed) == {"web": {"main"}, "etl": {"main"}}


def test_pods_follow_their_pools(bed: NodeBed) -> None:
    bed.run_pod("web", role="web")
    bed.run_pod("etl", role="etl")
    bed.node.write_roles(HALVES_SWAPPED)
    bed.await_pinned("web", ON_SECOND)
    bed.await_pinned("etl", ON_FIRST)


def test_refusal_is_described_and_the_pod_starts_when_there_is_room(bed: NodeBed) -> None:
    bed.create_pod("storage", role="storage", cpu="1")
    told = bed.await_event("storage", "FailedCreatePodSandBox", "plugin_refused")
    assert "wants 1 CPUs of its own" in told["message"]
    described = bed.kubectl("describe", "pod", "storage")
    assert "plugin_refused" in described
    assert "wants 1 CPUs of its own" in described
    await_held(bed, {})
    bed.node.write_roles(ONE_CPU_FREE)
    bed.await_running("storage")
    assert bed.pinned("storage") == ON_SECOND


def test_deletion_frees(bed: NodeBed) -> None:
    bed.node.write_roles(ONE_CPU_FREE)
    bed.run_pod("first", role="storage", cpu="1")
    assert bed.pinned("first") == ON_SECOND
    bed.delete_pod("first")
    await_held(bed, {})
    bed.run_pod("second", role="storage", cpu="1")
    assert bed.pinned("second") == ON_SECOND


def test_container_that_crashed_is_pinned_again(bed: NodeBed) -> None:
    before = container_id(bed.run_pod("etl", role="etl", command=UNTIL_TOLD))
    bed.exec("etl", "touch", "/tmp/go")
    bed.await_pod(
        "etl",
        lambda pod: container_id(pod) != before and "running" in statuses(pod)[0]["state"],
        "another container runs",
    )
    assert bed.pinned("etl") == ON_SECOND
    assert held(bed) == {"etl": {"main"}}


def test_init_containers_and_sidecars_are_pinned(bed: NodeBed) -> None:
    bed.create_pod(
        "etl",
        role="etl",
        containers=[container_object()],
        spec={
            "initContainers": [
                container_object("sidecar", restartPolicy="Always"),
                container_object("init", command=UNTIL_TOLD),
            ]
        },
    )
    bed.await_pod("etl", lambda pod: "init" in running(pod), "its init container runs")
    assert bed.pinned("etl", "init") == ON_SECOND
    assert bed.pinned("etl", "sidecar") == ON_SECOND
    bed.exec("etl", "touch", "/tmp/go", container="init")
    bed.await_running("etl")
    assert bed.pinned("etl") == ON_SECOND
    assert bed.pinned("etl", "sidecar") == ON_SECOND
    assert held(bed)["etl"] >= {"sidecar", "main"}


def test_ephemeral_containers_are_pinned(bed: NodeBed) -> None:
    bed.run_pod("etl", role="etl")
    image = ("--image=localhost/dovetail-test:1", "--image-pull-policy=Never")
    bed.kubectl("debug", "etl", "-c", "looker", *image, "--", "sleep", "3600")
    bed.await_pod("etl", lambda pod: "looker" in running(pod), "its ephemeral container runs")
    bed.await_pinned("etl", ON_SECOND, "looker")
    await_held(bed, {"etl": {"main", "looker"}})


@pytest.fixture
def static_pod(bed: NodeBed) -> Iterator[str]:
    """The name that the API server has it by."""
    manifest = pod_object("static", role="etl")
    draft, file = bed.node.directory / "static.draft", bed.node.static_pods / "static.json"
    draft.write_text(json.dumps(manifest))
    draft.rename(file)
    yield f"static-{bed.node.name}"
    file.unlink(missing_ok=True)
    await_held(bed, {})


def test_static_pods_are_pinned_and_released(bed: NodeBed, static_pod: str) -> None:
    bed.await_running(static_pod)
    assert bed.pinned(static_pod) == ON_SECOND
    assert held(bed) == {static_pod: {"main"}}
    (bed.node.static_pods / "static.json").unlink()
    await_held(bed, {})
    bed.await_gone(static_pod)


def test_resize_of_a_pod_in_a_pool(bed: NodeBed) -> None:
    first = bed.run_pod("etl", role="etl", cpu="200m", memory="64Mi")
    pid = bed.process_of("etl")
    assert limits(pid) == (20000, 64 * 2**20)
    amounts = {"cpu": "400m", "memory": "96Mi"}
    wanted = [{"name": "main", "resources": {"requests": amounts, "limits": amounts}}]
    path = "/api/v1/namespaces/default/pods/etl/resize"
    status, said = bed.cluster.request("PATCH", path, {"spec": {"containers": wanted}})
    assert status == OK, said
    bed.await_that(lambda: limits(pid) == (40000, 96 * 2**20), "its new limits", about="etl")
    told = bed.await_pod(
        "etl",
        lambda pod: statuses(pod)[0].get("resources", {}).get("limits") == amounts,
        "its new limits are told",
    )
    assert container_id(told) == container_id(first), "it runs on"
    assert bed.pinned("etl") == ON_SECOND


def running(pod: dict[str, Any]) -> set[str]:
    return {each["name"] for each in statuses(pod) if "running" in each["state"]}
