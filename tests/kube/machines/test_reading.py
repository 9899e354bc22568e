"""A cluster read once: what is in force, what is seen of it, and what is sold by pods or ledger."""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.kube.api.port import ApiError
from dovetail.kube.machines.acceptance import record_name, record_of
from dovetail.kube.machines.judging import seller_of
from dovetail.kube.machines.reading import empty_state, read_cluster, read_objects
from dovetail.machines.documents import Machine
from dovetail.machines.snapshot import StockSettings
from dovetail.podfit.objects import ConfigMap, KubeObject, Namespace, Node, Pod, StatefulSet
from tests.machines.lab import GROUP, Lab, kind, small
from tests.support.kube.memory import MemoryApi

ONE_NODE: dict[str, str | list[str]] = {"n1": "small"}


async def api_of(lab: Lab, *more: KubeObject) -> MemoryApi:
    api = MemoryApi()
    objects = (
        lab.machine,
        *lab.nodes.values(),
        *lab.namespaces.values(),
        *lab.guests.values(),
        *lab.sleepers.values(),
        *more,
    )
    for each in objects:
        body = msgspec.to_builtins(each)
        body["metadata"].pop("resourceVersion", None)
        await api.create(type(each), body, namespace=each.metadata.namespace)
    return api


def record(machine: Machine) -> ConfigMap:
    body = record_of(machine)
    meta = {**body["metadata"], "name": record_name(machine.metadata.name), "namespace": "dovetail"}
    return msgspec.convert({**body, "metadata": meta}, ConfigMap)


def judged(machine: Machine, accepted: str, **status: Any) -> Machine:
    told = {"type": "Accepted", "status": accepted, "message": "why", "observedGeneration": 1}
    found = msgspec.convert({"conditions": [told], **status}, type(machine.status))
    return msgspec.structs.replace(machine, status=found)


async def test_what_is_sold_is_read_from_pods() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    lab.sold("train", "small")
    state = await read_cluster(await api_of(lab), "dovetail")
    units = state.units[GROUP]
    assert {(each.type, each.node, each.is_stock) for each in units.values()} == {
        ("small", "n1", False),
        ("small", "n1", True),
    }
    assert state.table.free("n1", "cpu") == 8000


async def test_the_record_of_what_was_accepted_counts() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    before = lab.machine.spec
    lab.set_spec(small(kind("small", available=9), nodes=ONE_NODE))
    api = await api_of(lab)
    (there,) = api.everything(Machine).values()
    accepted = record(msgspec.structs.replace(there, spec=before))
    await api.create(ConfigMap, msgspec.to_builtins(accepted), namespace="dovetail")
    state = await read_cluster(api, "dovetail")
    seller = seller_of(state, GROUP)
    assert seller is not None
    assert seller[1].spec.machine_types[0].available == 2


async def test_without_the_record_the_status_tells_what_is_in_force() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    for machine, is_selling in (
        (lab.machine, False),
        (judged(lab.machine, "True", acceptedGeneration=1), True),
        (judged(lab.machine, "True", acceptedGeneration=0), False),
        (judged(lab.machine, "False"), False),
    ):
        lab.machine = machine
        state = await read_cluster(await api_of(lab), "dovetail")
        assert (seller_of(state, GROUP) is not None) == is_selling
    assert state.accepted.faults_of(state.machines[GROUP]) == ("why",)


async def test_what_is_forbidden_of_the_operators_own_is_passed_over() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    lab.machine = judged(lab.machine, "True", acceptedGeneration=1)
    api = await api_of(lab)

    async def refuse(_verb: str, asked: type[KubeObject], _name: str) -> None:
        if asked not in (Machine, Node, Pod, Namespace):
            raise ApiError(403, "Forbidden", "not for you")

    api.before = refuse
    assert seller_of(await read_cluster(api, "dovetail"), GROUP) is not None


async def test_the_image_of_sleepers_is_that_of_those_there_are() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    (found,) = lab.stateful_sets.values()
    body = msgspec.to_builtins(found)
    body["metadata"]["namespace"] = "dovetail"
    body["spec"]["template"]["spec"]["containers"][0]["image"] = "registry.example/pause:1"
    state = await read_cluster(await api_of(lab, msgspec.convert(body, StatefulSet)), "dovetail")
    assert state.settings == StockSettings(image="registry.example/pause:1")


async def test_objects_that_were_written_down_are_read_alike() -> None:
    lab = Lab(small(kind("small"), nodes=ONE_NODE))
    lab.sold("train", "small")
    state = empty_state(StockSettings())
    read_objects(
        state, [lab.machine, *lab.nodes.values(), *lab.namespaces.values(), *lab.guests.values()]
    )
    assert seller_of(state, GROUP) is not None
    assert [each.is_stock for each in state.units[GROUP].values()] == [False]
