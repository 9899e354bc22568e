"""Reading: the machines of a cluster as they are at one moment; `dovetail machines` asks.

By lists, not informers: a command looks once. It may be run by somebody who may not see what the
operator owns, so that is read as far as it is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from dovetail.kube.api.port import ApiError, KubeApi
from dovetail.kube.machines.state import MachineState
from dovetail.kube.machines.unit_ledger import by_group
from dovetail.kube.runtime.workqueue import WorkQueue
from dovetail.machines.documents import Machine, MachineNodePool, MachineShape
from dovetail.machines.names import MACHINE_GROUP
from dovetail.machines.preview.seen_units import units_seen
from dovetail.machines.snapshot import StockSettings
from dovetail.podfit.objects import (
    ConfigMap,
    KubeObject,
    Namespace,
    Node,
    Pod,
    Service,
    StatefulSet,
)
from dovetail.service.machine_units import MachineLedger

T = TypeVar("T", bound=KubeObject)

FORBIDDEN = 403
ACCEPTED = "Accepted"


def empty_state(settings: StockSettings) -> MachineState:
    """One that nobody works for: its queues fill, and that is all."""
    return MachineState(
        settings,
        groups=WorkQueue("groups read"),
        nodes=WorkQueue("nodes read"),
        pools=WorkQueue("pools read"),
    )


async def read_cluster(api: KubeApi, namespace: str) -> MachineState:
    """All that plans depend on; `namespace` is the operator's. Raises ApiError, ApiUnreachable."""
    owned = await _owned(api, namespace, StatefulSet)
    state = empty_state(StockSettings(namespace=namespace, image=image_of(owned)))
    for machine in (await api.list(Machine)).items:
        state.on_machine(None, machine)
    for record in await _owned(api, namespace, ConfigMap):
        state.on_config_map(None, record)
    accept_as_told(state, unjudged=False)
    for pool in await _owned(api, "", MachineNodePool):
        state.on_pool(None, pool)
    for stateful_set in owned:
        state.on_stateful_set(None, stateful_set)
    for service in await _owned(api, namespace, Service):
        state.on_service(None, service)
    for shape in await _owned(api, "", MachineShape):
        state.on_shape(None, shape)
    for space in (await api.list(Namespace)).items:
        state.on_namespace(None, space)
    for node in (await api.list(Node)).items:
        state.on_node(None, node)
    for pod in (await api.list(Pod)).items:
        state.on_pod(None, pod)
    state.set_units(units_seen(state.pods.values(), state.namespaces))
    return state


async def _owned(api: KubeApi, namespace: str, kind: type[T]) -> list[T]:
    """What the operator owns of a kind; nothing, if that is not for everybody to see."""
    try:
        return (await api.list(kind, namespace=namespace, labels=MACHINE_GROUP)).items
    except ApiError as error:
        if error.code != FORBIDDEN:
            raise
        return []


async def read_ledger(state: MachineState, ledger: MachineLedger) -> None:
    """What is sold as the ledger has it, in place of what pods show."""
    state.set_units(by_group(await ledger.units()))
    gpus = await ledger.gpus(list(state.owners))
    state.set_gpus_of_others({node: each.held_by_others for node, each in gpus.items()})


def read_objects(state: MachineState, objects: Iterable[KubeObject]) -> None:
    """The same from objects that somebody wrote down; what is not about machines is passed over.

    Machines among them are taken to be accepted, unless they say otherwise.
    """
    handlers: dict[type[KubeObject], Callable[[None, Any], None]] = {
        Machine: state.on_machine,
        MachineNodePool: state.on_pool,
        MachineShape: state.on_shape,
        ConfigMap: state.on_config_map,
        StatefulSet: state.on_stateful_set,
        Service: state.on_service,
        Namespace: state.on_namespace,
        Node: state.on_node,
        Pod: state.on_pod,
    }
    for each in objects:
        handlers[type(each)](None, each)
    accept_as_told(state, unjudged=True)
    state.set_units(units_seen(state.pods.values(), state.namespaces))


def accept_as_told(state: MachineState, *, unjudged: bool) -> None:
    """What is in force of Machines whose record was not seen, by what their status says.

    `unjudged`: also those of which it says nothing.
    """
    for machine in state.machines.values():
        told = next((each for each in machine.status.conditions if each.type == ACCEPTED), None)
        generation = machine.metadata.generation
        if told is not None and told.status != "True" and told.observed_generation == generation:
            state.accepted.refuse(machine, [told.message])
        elif state.accepted.of(machine) is None:
            is_newest = machine.status.accepted_generation == generation
            if unjudged if told is None else is_newest:
                state.accepted.accept(machine)
    state.own_nodes()


def image_of(stateful_sets: Iterable[StatefulSet]) -> str:
    """Of the sleepers that there are: what the operator was told is to be read nowhere else."""
    for each in stateful_sets:
        spec = each.spec.get("template", {}).get("spec", {})
        for container in spec.get("containers", ()):
            if image := container.get("image"):
                return str(image)
    return StockSettings().image
