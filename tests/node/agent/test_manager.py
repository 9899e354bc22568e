"""The manager: all that the back ends, the control socket and the daemon ask of it, by one port."""

from __future__ import annotations

import asyncio
from pathlib import Path

from dovetail.node.agent.manager import Manager, regularly
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.ports import ManagerPort
from dovetail.node.wire.pod_resources import SERVICE
from tests.support.loops import eventually
from tests.support.node.fakes import FakeRuntime, Node, Pieces, container, pod, sandbox

OWN = pod("a", container(cpu=2))


def of_node(node: Node) -> ManagerPort:
    """Typed as its users see it."""
    return node.manager


async def test_a_back_end_has_a_pod_admitted_and_the_control_socket_tells_of_it(
    tmp_path: Path,
) -> None:
    manager = of_node(Node(tmp_path, [Pieces()], [OWN]))

    async def story() -> ContainerSettings:
        await manager.admit_pod(sandbox(OWN))
        given = await manager.admit_container(sandbox(OWN), "main", ContainerSettings())
        await manager.container_created(sandbox(OWN), "main", "id-1", given)
        return given

    given = await story()
    assert given.cpus == "0-1"
    assert manager.current_settings("a", "main") == given
    (told,) = manager.state()["pods"]
    assert (told["uid"], told["containers"][0]["id"]) == ("a", "id-1")
    assert manager.explanation("default/pod-a") is not None
    assert manager.explanation("nobody") is None


def test_plugins_and_the_pod_resources_api_are_told_through_it(tmp_path: Path) -> None:
    manager = of_node(Node(tmp_path, [Pieces()], [OWN]))
    assert manager.plugin_statuses() == ()
    assert {each.method.path.split("/")[1] for each in manager.pod_resources()} == {SERVICE}


async def test_while_it_reconciles_a_pod_whose_sandbox_went_is_released(tmp_path: Path) -> None:
    cpu = Pieces()
    node = Node(tmp_path, [cpu], [OWN])
    manager = of_node(node)

    await node.start(OWN)
    assert node.source is not None
    node.source.pods.clear()
    async with manager.reconciling(FakeRuntime()):
        await manager.sandbox_gone(sandbox(OWN))
        await eventually(lambda: not cpu.held, 5)
    # Its loops ended with the block; a checkpoint may still be written.
    await eventually(lambda: len(asyncio.all_tasks()) == 1)
    await manager.stop()
    assert not node.store.pods


async def test_work_that_fails_is_done_again_after_the_period() -> None:
    done = 0

    async def work() -> None:
        nonlocal done
        done += 1
        raise ValueError("always")

    running = asyncio.create_task(regularly(work, 0.001))
    await eventually(lambda: done >= 3, 5)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_the_manager_is_what_the_port_says() -> None:
    port: type[ManagerPort] = Manager
    assert port is Manager
