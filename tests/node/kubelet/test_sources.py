"""While the API server is away: static pods start, and pods that were there are pinned again."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.node.kubelet.seen import ON_FIRST, ON_SECOND, await_held, held
from tests.support.node import pods_on
from tests.support.node.kubelet.bed import NodeBed, container_id, statuses
from tests.support.node.kubelet.pods import pod_object

SOON = "1s"


@pytest.fixture(scope="module")
def options() -> dict[str, object]:
    """The kubelet asks the API server about the agent again and again."""
    return {
        "kubelet_settings": {
            "authentication": {"webhook": {"cacheTTL": SOON}},
            "authorization": {
                "webhook": {"cacheAuthorizedTTL": SOON, "cacheUnauthorizedTTL": SOON}
            },
        }
    }


@contextmanager
def api_server_away(bed: NodeBed) -> Iterator[None]:
    """From when the kubelet does not answer the agent any more."""
    before = len(told(bed, "pods not known"))
    bed.cluster.apiserver.kill()
    try:
        bed.await_that(
            lambda: len(told(bed, "pods not known")) > before, "the agent cannot ask the kubelet"
        )
        yield
    finally:
        bed.cluster.apiserver.start()
        bed.cluster.await_ready()
        bed.await_ready()


def told(bed: NodeBed, event: str) -> list[dict[str, Any]]:
    return [each for each in bed.agent.lines if each.get("event") == event]


def await_started(bed: NodeBed, name: str, but: str = "") -> tuple[str, int]:
    """The id of a pod's container, other than that one, and its process; by node's means only."""

    def look() -> tuple[str, int] | None:
        for pod in bed.agent.told("state")["pods"]:
            for each in pod["containers"] if pod["name"] == name else ():
                if each["id"] and each["id"] != but:
                    try:
                        return each["id"], bed.node.process_of(each["id"])
                    except FileNotFoundError:
                        return None
        return None

    return bed.await_that(look, f"a container of {name}")


def await_remembered(bed: NodeBed, name: str) -> None:
    """Until the kubelet listed the pod of this uid or name to the agent."""
    file = bed.node.directory / "state/known_pods.json"
    bed.await_that(lambda: file.exists() and name in file.read_text(), f"{name} is remembered")


def await_told(bed: NodeBed, name: str, id_: str) -> None:
    """Until the API server knows that just this container runs."""
    bed.await_pod(
        name,
        lambda pod: any(
            container_id(pod) == id_ and "running" in each["state"] for each in statuses(pod)
        ),
        f"{id_} runs on",
    )


def kill_sandbox(bed: NodeBed, name: str) -> None:
    """The process that holds the pod together: the kubelet makes another."""
    tasks = bed.containerd.directory / "state/io.containerd.runtime.v2.task/k8s.io"
    for each in tasks.iterdir():
        marks = json.loads((each / "config.json").read_text())["annotations"]
        kind = marks["io.kubernetes.cri.container-type"]
        if (kind, marks["io.kubernetes.cri.sandbox-name"]) == ("sandbox", name):
            os.kill(int((each / "init.pid").read_text()), signal.SIGKILL)
            return
    raise LookupError(f"no sandbox of {name}")


@pytest.fixture
def static_pod(bed: NodeBed) -> Iterator[str]:
    """Its name, once it was written; the API server is there again when it goes."""
    file = bed.node.static_pods / "control-plane.manifest"
    yield f"control-plane-{bed.node.name}"
    file.unlink(missing_ok=True)
    await_held(bed, {})


def write_static_pod(bed: NodeBed) -> None:
    draft = bed.node.directory / "static.draft"
    draft.write_text(json.dumps(pod_object("control-plane", role="etl")))
    draft.rename(bed.node.static_pods / "control-plane.manifest")


def test_static_pods_start(bed: NodeBed, static_pod: str) -> None:
    with api_server_away(bed):
        write_static_pod(bed)
        started = await_started(bed, static_pod)
        _, pid = started
        assert pods_on.pinned(pid) == ON_SECOND
        known = [each["by"] for each in told(bed, "pod known otherwise")]
        assert "its manifest" in known
    await_remembered(bed, static_pod)
    assert await_started(bed, static_pod) == started, "it runs on"


@pytest.mark.parametrize("restarted", [False, True])
def test_pods_are_pinned_again_and_kept(bed: NodeBed, restarted: bool) -> None:
    pod = bed.run_pod("web", role="web")
    await_remembered(bed, pod["metadata"]["uid"])
    first, _ = await_started(bed, "web")
    with api_server_away(bed):
        if restarted:
            bed.agent.restart()
            bed.node.await_plugins()
        kill_sandbox(bed, "web")
        again, pid = await_started(bed, "web", but=first)
        assert pods_on.pinned(pid) == ON_FIRST
        assert held(bed) == {"web": {"main"}}
    await_told(bed, "web", again)
