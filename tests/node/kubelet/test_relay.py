"""A relay between kubelet and runtime: the node goes on while the agent is away."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.node.kubelet.seen import ON_FIRST, ON_SECOND, held
from tests.support.kube.cluster import OK
from tests.support.node.kubelet.bed import NodeBed, container_id
from tests.support.paths import DOVETAIL
from tests.support.processes import Process

NOT_READY_AFTER = timedelta(seconds=45)
"""Without a runtime, after which a kubelet has long said so: it does after 30."""


SAYING = ("sh", "-c", "echo here; while :; do sleep 1; done")


@pytest.fixture(scope="module")
def relay(shared_bed: NodeBed) -> Iterator[Process]:
    """In the place of the agent's own proxy, which the kubelet finds under the same name."""
    node, agent = shared_bed.node, shared_bed.agent
    agent.stop()
    agent.settings["runtime"] = {
        **agent.settings["runtime"],
        "relay": str(agent.directory / "d.sock"),
        "relay_wait": "2s",
    }
    endpoint, agent.endpoint = agent.endpoint, Path(agent.directory / "nobody.sock")
    runtime = agent.settings["runtime"]
    process = node.process(
        "relay",
        *(DOVETAIL, "agent", "relay"),
        f"--runtime-socket={runtime['socket']}",
        f"--runtime-listen={endpoint}",
        f"--runtime-relay={runtime['relay']}",
        "--runtime-relay-wait=2s",
    )
    endpoint.unlink(missing_ok=True)
    process.start()
    try:
        process.await_ready(endpoint.exists)
        agent.start()
        node.await_plugins()
        yield process
    finally:
        process.stop()


@pytest.fixture
def relayed(bed: NodeBed, relay: Process) -> Iterator[NodeBed]:
    assert relay.is_running
    yield bed
    if not bed.agent.is_running:
        bed.agent.start()
        bed.node.await_plugins()


def ready(bed: NodeBed) -> dict[str, Any]:
    status, said = bed.cluster.request("GET", f"/api/v1/nodes/{bed.node.name}")
    assert status == OK, said
    conditions = json.loads(said)["status"]["conditions"]
    found: dict[str, Any] = next(each for each in conditions if each["type"] == "Ready")
    return found


def renewed(bed: NodeBed) -> datetime:
    """When the kubelet told last that it is there."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{bed.node.name}"
    status, said = bed.cluster.request("GET", path)
    assert status == OK, said
    return datetime.fromisoformat(json.loads(said)["spec"]["renewTime"])


def test_without_a_relay_the_node_is_lost_while_the_agent_is_away(bed: NodeBed) -> None:
    """The first of this module: those after it have one."""
    bed.run_pod("web", role="web", command=SAYING)
    bed.agent.kill()
    bed.await_ready("False")
    with pytest.raises(AssertionError, match="exec"):
        bed.exec("web", "true")
    assert "unable to retrieve" in bed.logs("web")
    assert "container runtime is down" in ready(bed)["message"]
    bed.agent.start()
    bed.node.await_plugins()
    bed.await_ready()
    assert bed.pinned("web") == ON_FIRST


def test_pods_are_pinned_and_refused_through_the_relay(relayed: NodeBed) -> None:
    relayed.run_pod("web", role="web")
    assert relayed.pinned("web") == ON_FIRST
    relayed.create_pod("own", role="storage", cpu="1")
    told = relayed.await_event("own", "FailedCreatePodSandBox", "plugin_refused")
    assert "wants 1 CPUs of its own" in told["message"]


def test_node_stays_ready_and_pods_can_be_entered_while_the_agent_is_away(
    relayed: NodeBed,
) -> None:
    relayed.run_pod("web", role="web", command=SAYING)
    before = ready(relayed)
    relayed.agent.kill()
    until = datetime.now(UTC) + NOT_READY_AFTER
    relayed.await_that(lambda: renewed(relayed) > until, "signs of the kubelet for long enough")
    now = ready(relayed)
    assert now["status"] == "True"
    assert now["lastTransitionTime"] == before["lastTransitionTime"]
    assert "Cpus_allowed_list:\t0\n" in relayed.exec("web", "cat", "/proc/self/status")
    assert relayed.logs("web") == "here\n"
    relayed.delete_pod("web")


def test_pod_that_comes_while_the_agent_is_away_starts_when_it_is_back(relayed: NodeBed) -> None:
    relayed.agent.stop()
    relayed.create_pod("etl", role="etl", node=relayed.node.name)
    relayed.await_event("etl", "FailedCreatePodSandBox", "agent_away")
    relayed.agent.start()
    relayed.node.await_plugins()
    relayed.await_running("etl")
    assert relayed.pinned("etl") == ON_SECOND
    assert held(relayed) == {"etl": {"main"}}


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_restart_of_the_agent_is_noticed_by_nobody(relayed: NodeBed, how: str) -> None:
    before = container_id(relayed.run_pod("web", role="web"))
    since = ready(relayed)["lastTransitionTime"]
    for turn in range(3):
        if how == "kill":
            relayed.agent.kill()
            relayed.agent.start()
        else:
            relayed.agent.restart()
        relayed.create_pod(f"etl-{turn}", role="etl", cpu="10m", node=relayed.node.name)
    for turn in range(3):
        relayed.await_running(f"etl-{turn}")
        assert relayed.pinned(f"etl-{turn}") == ON_SECOND
    assert ready(relayed)["lastTransitionTime"] == since
    pod = relayed.pod("web")
    assert pod
    assert container_id(pod) == before
    assert relayed.pinned("web") == ON_FIRST
