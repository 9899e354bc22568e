"""While a plugin is down, the role of a pod decides what becomes of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from dovetail.node.admission.configuration import AdmissionConfiguration, Outage
from dovetail.node.admission.gate import ADMISSIONS
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.ports import AdmissionRejected, PluginFailure
from tests.support.node.fakes import TWO_NODES, Node, Pieces, container, pod, sandbox

ROLE = {"kubernetes.io/pod-role": "batch"}
OWN = pod("a", container(cpu=2), annotations=ROLE)


def by(outage: Outage, wait: float = 0.2) -> AdmissionConfiguration:
    return msgspec.structs.replace(TWO_NODES, outages={"batch": outage}, outage_wait=wait)


def rejected(node: Node) -> AdmissionRejected:
    with pytest.raises(AdmissionRejected) as caught:
        asyncio.run(node.manager.admit_pod(sandbox(OWN)))
    return caught.value


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize(
    ("failure", "reason"), [(None, "plugin_down"), (PluginFailure.TIMEOUT, "plugin_timeout")]
)
def test_reject_is_final(
    tmp_path: Path, aligned: bool, failure: PluginFailure | None, reason: str
) -> None:
    cpu = Pieces(aligned=aligned)
    cpu.failure, cpu.up = failure, failure is not None
    error = rejected(Node(tmp_path, [cpu], [OWN], by(Outage.REJECT)))
    assert (error.reason, error.later) == (reason, False)


async def test_reject_is_what_other_roles_get(tmp_path: Path) -> None:
    cpu = Pieces()
    cpu.up = False
    own = pod("b", container(cpu=2))
    with pytest.raises(AdmissionRejected):
        await Node(tmp_path, [cpu], [own], by(Outage.FAIL_OPEN)).start(own)


async def test_retry_waits_for_the_plugin(tmp_path: Path) -> None:
    cpu = Pieces()
    cpu.up = False
    node = Node(tmp_path, [cpu], [OWN], by(Outage.RETRY, wait=5))

    async def story() -> dict[str, str]:
        starting = asyncio.create_task(node.start(OWN))
        await asyncio.sleep(0.1)
        cpu.up = True
        return await starting

    assert await story() == {"main": "0-1"}


def test_retry_ends_and_the_pod_may_come_later(tmp_path: Path) -> None:
    cpu = Pieces()
    cpu.up = False
    error = rejected(Node(tmp_path, [cpu], [OWN], by(Outage.RETRY, wait=0.1)))
    assert (error.reason, error.later) == ("plugin_down", True)


def test_retry_does_not_ask_again_who_refused(tmp_path: Path) -> None:
    cpu = Pieces()
    cpu.failure = PluginFailure.REFUSED
    error = rejected(Node(tmp_path, [cpu], [OWN], by(Outage.RETRY)))
    assert (error.reason, error.later) == ("plugin_refused", False)
    assert len(cpu.asked("GetTopologyHints")) == 1


async def test_keep_last_is_what_it_had_even_if_that_is_too_little(tmp_path: Path) -> None:
    cpu = Pieces()
    node = Node(tmp_path, [cpu], [OWN], by(Outage.KEEP_LAST))
    await node.start(OWN)
    grown = pod("a", container(cpu=3), annotations=ROLE)
    node.source.pods["a"] = grown  # type: ignore[union-attr]
    cpu.up = False
    assert await node.start(grown) == {"main": "0-1"}


def test_keep_last_rejects_who_had_nothing(tmp_path: Path) -> None:
    cpu = Pieces()
    cpu.up = False
    assert rejected(Node(tmp_path, [cpu], [OWN], by(Outage.KEEP_LAST))).reason == "plugin_down"


async def test_fail_open_starts_without_and_says_so(tmp_path: Path) -> None:
    cpu, other = Pieces(), Pieces("gpu", {0: [0], 1: [1]}, property_name="")
    cpu.up = False
    own = pod("a", container(cpu=2, gpu=1), annotations=ROLE)
    node = Node(tmp_path, [cpu, other], [own], by(Outage.FAIL_OPEN))
    assert await node.start(own) == {"main": ""}
    assert other.held, "the other one is asked as always"
    assert node.store.pods["a"].containers["main"].missing == ("cpu",)
    record = node.manager.gate.log.of("a")[0]
    assert (record.result, record.reason) == ("admitted", "plugin_down")
    assert record.words == "cpu is not there"


async def test_fail_open_makes_up_for_it_when_the_container_is_created_again(
    tmp_path: Path,
) -> None:
    cpu = Pieces()
    cpu.up = False
    node = Node(tmp_path, [cpu], [OWN], by(Outage.FAIL_OPEN))
    await node.start(OWN)
    cpu.up = True
    settings = await node.manager.admit_container(sandbox(OWN), "main", ContainerSettings())
    assert settings.cpus == "0-1"
    assert node.store.pods["a"].containers["main"].missing == ()


def test_nobody_fails_open_for_a_plugin_that_refuses(tmp_path: Path) -> None:
    cpu = Pieces()
    cpu.failure = PluginFailure.REFUSED
    assert rejected(Node(tmp_path, [cpu], [OWN], by(Outage.FAIL_OPEN))).reason == "plugin_refused"


async def test_a_plugin_that_was_asked_and_did_not_answer_hears_of_the_end(tmp_path: Path) -> None:
    """It may have allocated all the same."""
    cpu = Pieces(aligned=False)
    cpu.failure = PluginFailure.TIMEOUT
    node = Node(tmp_path, [cpu], [OWN], by(Outage.FAIL_OPEN))

    await node.manager.admit_pod(sandbox(OWN))
    await node.manager.collector.release("a")
    assert cpu.asked("RemovePod")


async def test_a_plugin_that_is_gone_altogether_leaves_what_it_gave(tmp_path: Path) -> None:
    own = pod("a", container(cpu=2))
    await Node(tmp_path, [Pieces()], [own]).start(own)
    assert await Node(tmp_path, [], [own]).start(own) == {"main": "0-1"}


async def test_plugins_are_remembered_so_that_one_that_is_missing_is_known_to_be(
    tmp_path: Path,
) -> None:
    own = pod("a", container(cpu=2))
    cpu = Pieces()
    await Node(tmp_path, [cpu], [own]).start(own)
    node = Node(tmp_path, [], [own])
    assert node.store.state.plugins == {"cpu": cpu.options}
    node.store.forget_plugin("cpu")
    assert node.store.state.plugins == {}


async def test_what_is_started_without_is_counted(tmp_path: Path) -> None:
    counted = ADMISSIONS.labels("admitted", "plugin_down")
    before = counted._value.get()
    cpu = Pieces()
    cpu.up = False
    await Node(tmp_path, [cpu], [OWN], by(Outage.FAIL_OPEN)).manager.admit_pod(sandbox(OWN))
    assert counted._value.get() == before + 1


@pytest.mark.parametrize(
    ("outage", "starts"),
    [
        (Outage.REJECT, False),
        (Outage.RETRY, False),
        (Outage.KEEP_LAST, True),
        (Outage.FAIL_OPEN, True),
    ],
)
async def test_a_plugin_that_is_down_when_a_container_it_knows_starts(
    tmp_path: Path, outage: Outage, starts: bool
) -> None:
    cpu = Pieces()
    cpu.options.pre_start_required = True
    node = Node(tmp_path, [cpu], [OWN], by(outage, wait=0.05))

    async def story() -> str:
        await node.manager.admit_pod(sandbox(OWN))
        cpu.up = False
        return (await node.manager.admit_container(sandbox(OWN), "main", ContainerSettings())).cpus

    if starts:
        assert await story() == "0-1"
    else:
        with pytest.raises(AdmissionRejected) as caught:
            await story()
        assert caught.value.reason == "plugin_down"
        assert caught.value.later is (outage is Outage.RETRY)
