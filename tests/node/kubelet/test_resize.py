"""In-place resizes by an unmodified kubelet, whichever way containers are reached."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.node.kubelet.seen import ON_FIRST
from tests.support.node.kubelet.bed import NodeBed, container_id
from tests.support.node.pods_on import Pinned

ALL_FREE = """
[roles.storage]
cpu = { exclusive = true }
memory = { bind = true }
"""
"""One of the two CPUs stays for those who share."""

ONE_FREE = f"""
[pools.offline]
cpus = "1"
{ALL_FREE}"""

ON_BOTH = Pinned("0-1", "0", "0-1", "0")


@pytest.fixture(scope="module", params=["proxy", "nri", "cri"])
def options(request: pytest.FixtureRequest) -> dict[str, object]:
    return {"backend": request.param, "roles": ALL_FREE}


@pytest.fixture
def node(shared_bed: NodeBed) -> Iterator[NodeBed]:
    yield shared_bed
    shared_bed.delete_pods()
    shared_bed.node.write_roles(ALL_FREE)


def resize(bed: NodeBed, name: str, **amounts: str) -> int:
    """Ask for it; the generation of the pod that asks."""
    resources = {"requests": amounts, "limits": amounts}
    patch = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    bed.kubectl("patch", "pod", name, "--subresource=resize", "-p", json.dumps(patch))
    pod = bed.pod(name)
    assert pod
    generation: int = pod["metadata"]["generation"]
    return generation


def condition(pod: dict[str, Any], kind: str) -> dict[str, Any]:
    found = (each for each in pod["status"].get("conditions", []) if each["type"] == kind)
    return next(found, {})


def await_resized(bed: NodeBed, name: str, cpu: str) -> None:
    """Until the kubelet says that the container has it, and nothing is on the way."""

    def done(pod: dict[str, Any]) -> bool:
        (own,) = pod["status"]["containerStatuses"]
        has = own.get("resources", {}).get("limits", {}).get("cpu")
        pending = condition(pod, "PodResizeInProgress") or condition(pod, "PodResizePending")
        return has == cpu and not pending

    bed.await_pod(name, done, f"resized to {cpu}")


def test_own_cpus_grow_shrink_and_are_shared(node: NodeBed) -> None:
    before = container_id(node.run_pod("own", role="storage", cpu="1"))
    node.await_pinned("own", ON_FIRST)
    resize(node, "own", cpu="2")
    await_resized(node, "own", "2")
    node.await_pinned("own", ON_BOTH)
    resize(node, "own", cpu="1")
    await_resized(node, "own", "1")
    node.await_pinned("own", ON_FIRST)
    resize(node, "own", cpu="1500m")
    await_resized(node, "own", "1500m")
    node.await_pinned("own", ON_BOTH)
    pod = node.pod("own")
    assert pod
    assert container_id(pod) == before, "it was not restarted"


def test_what_was_left_is_the_next_ones(node: NodeBed) -> None:
    node.run_pod("own", role="storage", cpu="1")
    node.await_pinned("own", ON_FIRST)
    resize(node, "own", cpu="500m")
    await_resized(node, "own", "500m")
    node.await_pinned("own", ON_BOTH)
    node.run_pod("next", role="storage", cpu="1")
    node.await_pinned("next", ON_FIRST)
    node.await_pinned("own", Pinned("1", "0", "1", "0"))


def test_refused_resize_is_in_the_condition_of_the_pod(node: NodeBed) -> None:
    """By `cri` nobody is asked before: the container keeps its CPUs, and that is logged."""
    node.node.write_roles(ONE_FREE)
    node.await_that(
        lambda: any(each.get("receiver") == "offline" for each in moves(node)), "pools of the file"
    )
    node.run_pod("own", role="storage", cpu="1")
    node.await_pinned("own", ON_FIRST)
    resize(node, "own", cpu="2")
    told = refusal_logged if node.node.options.backend == "cri" else refusal_in_condition
    assert "wants 2 CPUs of its own" in told(node, "own")
    assert node.pinned("own") == ON_FIRST
    # As soon as there is room it is done.
    node.node.write_roles(ALL_FREE)
    await_resized(node, "own", "2")
    node.await_pinned("own", ON_BOTH)


def refusal_in_condition(bed: NodeBed, name: str) -> str:
    def refused(pod: dict[str, Any]) -> bool:
        found = condition(pod, "PodResizeInProgress")
        return found.get("reason") == "Error" and "plugin_refused" in found.get("message", "")

    pod = bed.await_pod(name, refused, "the reason in its condition")
    message: str = condition(pod, "PodResizeInProgress")["message"]
    return message


def refusal_logged(bed: NodeBed, name: str) -> str:
    pod = bed.pod(name)
    assert pod

    def logged() -> str:
        lines = (each for each in bed.agent.lines if pod["metadata"]["uid"] in str(each))
        return next((each["why"] for each in lines if each["event"] == "not resized"), "")

    return bed.await_that(logged, "the reason in the log")


def moves(bed: NodeBed) -> list[dict[str, Any]]:
    """What the CPU plugin moved between pools so far."""
    lines = bed.node.plugins["cpu"].output.splitlines()
    return [json.loads(line) for line in lines if line.startswith("{") and '"moved"' in line]


def test_container_of_a_pool_stays_there(node: NodeBed) -> None:
    node.run_pod("shared", cpu="500m")
    node.await_pinned("shared", ON_BOTH)
    resize(node, "shared", cpu="700m")
    await_resized(node, "shared", "700m")
    assert node.pinned("shared") == ON_BOTH


def test_resize_that_restarts_the_container(node: NodeBed) -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    before = container_id(node.run_pod("own", role="storage", cpu="1", resizePolicy=policy))
    resize(node, "own", cpu="2")
    node.await_pod("own", lambda pod: container_id(pod) != before, "another container")
    await_resized(node, "own", "2")
    node.await_pinned("own", ON_BOTH)


def test_resize_while_the_agent_is_away(node: NodeBed) -> None:
    node.run_pod("own", role="storage", cpu="1")
    node.agent.kill()
    resize(node, "own", cpu="2")
    if node.node.options.backend != "proxy":
        await_resized(node, "own", "2")
    node.agent.start()
    node.node.await_plugins()
    await_resized(node, "own", "2")
    node.await_pinned("own", ON_BOTH)
