"""The extender: which nodes have the devices, which are best, and binding with a claim."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import msgspec
import pytest

from dovetail.devices.allocation.request import DeviceHolding
from dovetail.devices.allocation.strategies import Strategy
from dovetail.kube.api.port import ApiNotFound
from dovetail.kube.extender.app import application
from dovetail.kube.extender.extender import Extender
from dovetail.kube.extender.wire import Args, BindingArgs
from dovetail.kube.scheduler.claims import PodClaims
from dovetail.kube.scheduler.plans import FENCE, held_by
from dovetail.kube.scheduler.state import ClusterState
from dovetail.ledger import LedgerBusy
from dovetail.podfit.objects import Pod
from tests.kube.scheduler.dra.claims_world import device_class, dra_fleet, given
from tests.kube.scheduler.world import (
    NAMESPACE,
    World,
    device,
    empty_state,
    node_body,
    until,
    until_told,
)

ALL = ["n1", "n2", "plain"]


class Asking:
    """kube-scheduler's side of the conversation."""

    def __init__(self, world: World, client: httpx2.AsyncClient, state: ClusterState) -> None:
        self._world = world
        self._client = client
        self.state = state

    async def post(self, verb: str, message: object) -> Any:
        answer = await self._client.post(f"/{verb}", content=msgspec.json.encode(message))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def about(self, name: str, nodes: list[str]) -> dict[str, Any]:
        pod = self._world.api.raw(Pod, name, NAMESPACE)
        return {"Pod": pod, "Nodes": None, "NodeNames": nodes}

    async def filter(self, name: str, nodes: list[str] = ALL) -> list[str]:
        found: list[str] = (await self.post("filter", self.about(name, nodes)))["NodeNames"]
        return found

    async def is_left(self, name: str, nodes: list[str], wanted: list[str]) -> bool:
        return await self.filter(name, nodes) == wanted

    async def bind(self, name: str, node: str) -> str:
        pod = self._world.see(name)
        about = {"PodName": name, "PodNamespace": NAMESPACE, "Node": node}
        error: str = (await self.post("bind", {**about, "PodUID": pod.metadata.uid}))["Error"]
        return error


@asynccontextmanager
async def extending(world: World, strategy: Strategy = Strategy.FIRST_FIT) -> AsyncIterator[Asking]:
    await world.resource_class("gpu")
    await world.node("n1", device("g0"))
    await world.node("n2", device("g0"), device("g1"))
    await world.node("plain")
    replica = world.replica(strategy)
    async with world.scheduling(replica) as scheduler:
        app = application(Extender(replica.extender_parts()))
        transport = httpx2.ASGITransport(app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://extender") as client:
            await until(lambda: len(scheduler.state.devices) == 3)
            yield Asking(world, client, scheduler.state)


async def test_nodes_without_the_devices_are_filtered_out_with_a_reason(world: World) -> None:
    async with extending(world) as ask:
        await world.pod("p", scheduler="default-scheduler", gpu=2)
        answer = await ask.post("filter", ask.about("p", ALL))
        assert answer["NodeNames"] == ["n2"]
        assert answer["Error"] == ""
        assert answer["FailedAndUnresolvableNodes"] == {
            "n1": "class gpu: 2 asked, 1 of 1 free",
            "plain": "class gpu: 2 asked, 0 of 0 free",
        }


async def test_whole_nodes_come_back_whole(world: World) -> None:
    async with extending(world) as ask:
        await world.pod("p", scheduler="default-scheduler", gpu=1)
        items = [node_body(name) for name in ALL]
        about = {**ask.about("p", []), "Nodes": {"items": items}, "NodeNames": None}
        answer = await ask.post("filter", about)
        assert answer["NodeNames"] is None
        assert answer["Nodes"]["items"] == items[:2]


async def test_pods_that_ask_for_no_class_are_not_filtered(world: World) -> None:
    async with extending(world) as ask:
        await world.pod("p", scheduler="default-scheduler")
        assert await ask.filter("p") == ALL
        assert await ask.bind("p", "plain") == ""
        assert world.see("p").spec.node_name == "plain"


async def test_a_class_that_is_not_there_fits_nowhere(world: World) -> None:
    async with extending(world) as ask:
        await world.pod("p", scheduler="default-scheduler", fpga=1)
        answer = await ask.post("filter", ask.about("p", ["n1"]))
        assert answer["NodeNames"] == []
        assert answer["FailedAndUnresolvableNodes"] == {"n1": "there is no resource class 'fpga'"}


async def test_nodes_are_ranked_by_the_strategy_from_0_to_10(world: World) -> None:
    async with extending(world, Strategy.BEST_FIT) as ask:
        await world.pod("p", scheduler="default-scheduler", gpu=1)
        found = await ask.post("prioritize", ask.about("p", ["n1", "n2"]))
        assert found == [{"Host": "n1", "Score": 10}, {"Host": "n2", "Score": 5}]


async def test_binding_claims_annotates_and_binds(world: World) -> None:
    async with extending(world) as ask:
        await world.pod("p", scheduler="default-scheduler", gpu=2)
        assert await ask.bind("p", "n2") == ""
        pod = world.see("p")
        assert pod.spec.node_name == "n2"
        assert held_by(pod) == {"g0": 1, "g1": 1}
        assert await world.held() == {"p": {"g0": 1, "g1": 1}}
        await world.pod("q", scheduler="default-scheduler", gpu=1)
        assert await ask.filter("q") == ["n1"]


async def test_what_is_taken_is_not_bound_and_kube_scheduler_is_told(world: World) -> None:
    async with extending(world) as ask:
        other = "44444444-4444-4444-4444-444444444444"
        await world.devices.claim(other, "x", "y", "n1", [DeviceHolding("g0", 1)])
        await world.pod("p", scheduler="default-scheduler", gpu=1)
        assert "no devices left on n1" in await ask.bind("p", "n1")
        assert not world.is_bound("p")
        assert await world.held() == {other: {"g0": 1}}


async def test_a_binding_that_was_begun_is_finished_where_it_was_begun(world: World) -> None:
    async with extending(world) as ask:
        pod = await world.pod("p", scheduler="default-scheduler", gpu=1)
        held = [DeviceHolding("g1", 1, "gpu", "main")]
        await world.devices.claim(pod.metadata.uid, NAMESPACE, "default", "n2", held)
        await until_told(lambda: ask.is_left("p", ALL, ["n2"]))
        assert "claimed already" in await ask.bind("p", "n1")
        assert await ask.bind("p", "n2") == ""
        assert held_by(world.see("p")) == {"g1": 1}


async def test_a_binding_that_cannot_be_finished_there_is_given_back_behind_a_fence(
    world: World,
) -> None:
    async with extending(world) as ask:
        pod = await world.pod("p", scheduler="default-scheduler", gpu=1)
        await world.devices.claim(
            pod.metadata.uid, NAMESPACE, "default", "n2", [DeviceHolding("g1", 1, "gpu", "main")]
        )
        await until_told(lambda: ask.is_left("p", ALL, ["n2"]))
        await until_told(lambda: ask.is_left("p", ["n1"], ["n1"]))
        assert FENCE in [each.type for each in world.see("p").status.conditions]
        assert await world.held() == {}
        assert await ask.bind("p", "n1") == ""


async def test_a_pod_that_is_another_by_now_is_not_bound(world: World) -> None:
    async with extending(world) as ask:
        await world.pod("p", scheduler="default-scheduler", gpu=1)
        about = {"PodName": "p", "PodNamespace": NAMESPACE, "PodUID": "old", "Node": "n1"}
        assert "another by now" in (await ask.post("bind", about))["Error"]
        assert not world.is_bound("p")


async def test_a_claim_made_after_a_fence_and_left_behind_is_given_back(world: World) -> None:
    """Nobody may rely on it, and without that the pod would wait for ever."""

    async with extending(world) as ask:
        pod = await world.pod("p", scheduler="default-scheduler", gpu=1)
        held = [DeviceHolding("g1", 1, "gpu", "main")]
        await PodClaims(world.api, world.devices, empty_state()).release_fenced(pod, "test")
        await world.devices.claim(pod.metadata.uid, NAMESPACE, "default", "n2", held)
        await until_told(lambda: ask.is_left("p", ["n2"], []))
        await until_told(lambda: ask.is_left("p", ["n2"], ["n2"]))
        assert await ask.bind("p", "n2") == ""
        assert await world.held() == {"p": {"g0": 1}}


async def test_a_pod_that_is_bound_already_is_left_where_it_is(world: World) -> None:
    async with extending(world) as ask:
        await world.pod("p", scheduler="default-scheduler", gpu=1)
        assert await ask.bind("p", "n1") == ""
        await until(lambda: ask.state.pods[world.see("p").metadata.uid].spec.node_name == "n1")
        assert await ask.bind("p", "n1") == ""
        assert "is bound to n1 already" in await ask.bind("p", "n2")
        assert ask.state.nodes.node_of(world.see("p").metadata.uid) == "n1"
        assert not ask.state.planned_uids()


async def test_a_plan_that_fails_with_an_error_is_forgotten(world: World) -> None:
    async with extending(world) as ask:
        pod = await world.pod("p", scheduler="default-scheduler", gpu=1)
        await until(lambda: pod.metadata.uid in ask.state.pods)

        async def gone(verb: str, *_: object) -> None:
            if verb in ("create binding", "get"):
                raise ApiNotFound(404, "NotFound", "gone")

        async def busy(*_: object) -> bool:
            raise LedgerBusy("away")

        world.api.before = gone
        world.devices.release = busy  # type: ignore[assignment,method-assign]
        assert await ask.bind("p", "n1") == "away"
        assert not ask.state.planned_uids()


async def test_pods_that_ask_directly_are_kept_from_what_is_held_by_class(world: World) -> None:
    gpus = "nvidia.com/gpu"

    async with extending(world) as ask:
        await world.resource_class("pool", gpus)
        await world.node("n3", plugged={gpus: 2})
        await until(lambda: "n3" in ask.state.devices)
        await world.pod("classy", scheduler="default-scheduler", pool=1)
        await until_told(lambda: ask.is_left("classy", ["n3"], ["n3"]))
        await until_told(lambda: is_bound(ask, "classy", "n3"))
        await world.pod("two", scheduler="default-scheduler", direct={gpus: 2})
        answer = await ask.post("filter", ask.about("two", ["n1", "n3"]))
        assert answer["NodeNames"] == ["n1"], "of what n1 has, kube-scheduler knows best"
        assert answer["FailedNodes"] == {"n3": f"Insufficient {gpus}"}
        assert await ask.bind("two", "n3") == f"Insufficient {gpus} on n3"
        await world.pod("one", scheduler="default-scheduler", direct={gpus: 1})
        assert await ask.bind("one", "n3") == ""
        await world.pod("more", scheduler="default-scheduler", pool=1)
        assert await ask.filter("more", ["n3"]) == []


async def is_bound(ask: Asking, name: str, node: str) -> bool:
    """Sooner or later: a new device is not in the ledger at once."""
    return await ask.bind(name, node) == ""


@pytest.mark.parametrize("body", [b"", b"{", b'{"Pod": 3}', b"[]"])
async def test_what_is_no_message_is_refused(world: World, body: bytes) -> None:
    async with extending(world) as ask:
        answer = await ask._client.post("/filter", content=body)
        assert answer.status_code == 400
        assert "not a message of extender API v1" in answer.text


async def test_devices_of_drivers_are_bound_with_a_claim(world: World) -> None:
    await dra_fleet(world, ["d1"])
    await device_class(world, "big", "example.com/accelerator")
    replica = world.replica()
    async with world.scheduling(replica):
        extender = Extender(replica.extender_parts())
        pod = await world.pod("p", scheduler="default-scheduler", gpu=1)
        about = BindingArgs(
            pod_name="p", pod_namespace=NAMESPACE, pod_uid=pod.metadata.uid, node="d1"
        )
        assert (await extender.bind(about)).error == ""
        assert given(world, "p") == {("main", "g0")}
        wants = {"example.com/accelerator": 1}
        both = await world.pod("both", scheduler="default-scheduler", gpu=1, direct=wants)
        refused = extender.filter(Args(pod=both, node_names=["d1"]))
        assert refused.node_names == []
        assert "DeviceClass 'big'" in refused.failed_and_unresolvable_nodes["d1"]
