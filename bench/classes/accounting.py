"""The book by itself: status from cold, after each pod, and devices chosen for a pod."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from dovetail.core.device import Device
from dovetail.core.rows import Rows
from dovetail.core.selectors.selector import Expression, Operator
from dovetail.devices.allocation.inventory import DeviceInventory
from dovetail.devices.allocation.request import DeviceRequest
from dovetail.devices.allocation.strategies import Strategy
from dovetail.devices.classes.documents import DeviceClass, Member

from ..agent.times import Times

NODES = 1000
DEVICES = 8
CLASSES = 50
NESTED = 2
PODS = 2000
COLD_STARTS = 5

MEMORY = (16, 24, 40, 48, 80, 96)
SPEED = (10, 25, 40, 100, 200, 400)
MODELS = ("t4", "l4", "l40s", "a100", "h100", "h200")


@dataclass(frozen=True, slots=True)
class Accounting:
    nodes: int
    devices: int
    classes: int
    pods: int
    held: int
    cold: Times
    event: dict[str, Times]
    """Per pod that comes or goes: with the status of every class read after it."""
    place: dict[str, Times]
    """Per pod: the nodes that fit, their scores, and devices on the best."""


def measure(nodes: int = NODES, pods: int = PODS) -> Accounting:
    fleet, classes = list(fleet_of(nodes)), list(classes_of(CLASSES))
    cold = Times()
    for _ in range(COLD_STARTS):
        with cold.one():
            inventory = loaded(fleet, classes)
            for cls in classes:
                inventory.status(cls.name)
    events, places = {}, {}
    held = 0
    for label, extra in (("plain", ()), ("with nested", nested_of(NESTED))):
        inventory = loaded(fleet, [*classes, *extra])
        inventory.changed_classes()
        events[label], placed = pod_events(inventory, pods)
        held = max(held, placed)
    for strategy in Strategy:
        places[str(strategy)] = placements(loaded(fleet, classes), pods // 2, strategy)
    return Accounting(nodes, nodes * DEVICES, CLASSES, pods, held, cold, events, places)


def fleet_of(nodes: int) -> Iterator[tuple[str, list[Device]]]:
    """Half GPUs and half NICs; each device has a serial number, so no two are quite the same."""
    chance = random.Random(1)
    for number in range(nodes):
        node = f"node-{number:05}"
        model, speed = chance.randrange(len(MODELS)), chance.choice(SPEED)
        yield (
            node,
            [
                Device(
                    node=node,
                    name=f"{'gpu' if at % 2 else 'nic'}-{at}",
                    kind="gpu" if at % 2 else "nic",
                    units=1 if at % 2 else 4,
                    properties={
                        "numa": str(at * 2 // DEVICES),
                        "serial": f"{number}-{at}",
                        "model": MODELS[model] if at % 2 else "cx7",
                        **(
                            {"memory": f"{MEMORY[model]}G"} if at % 2 else {"speed": f"{speed}Gbps"}
                        ),
                    },
                )
                for at in range(DEVICES)
            ],
        )


def classes_of(count: int) -> Iterator[DeviceClass]:
    """Classes that overlap: by memory, speed, model, place, and by several of them."""
    gpu, nic = (Expression("Kind", Operator.IN, (kind,)) for kind in ("gpu", "nic"))
    memory = [Expression("memory", Operator.GT_EQ, (f"{size}G",)) for size in MEMORY]
    speeds = [Expression("speed", Operator.GT_EQ, (f"{speed}Gbps",)) for speed in SPEED]
    models = [Expression("model", Operator.IN, (model,)) for model in MODELS]
    places = [Expression("numa", Operator.EQ, (numa,)) for numa in "01"]
    terms = [
        *((gpu, each) for each in (*memory, *models)),
        *((nic, each) for each in speeds),
        *((gpu, *each) for each in product(memory, places)),
        *((nic, *each) for each in product(speeds, places)),
        *((gpu, *each) for each in product(models, places)),
        (gpu,),
        (nic,),
    ]
    for number, term in enumerate(terms[:count]):
        yield DeviceClass(f"class-{number}", (term,))


def nested_of(count: int) -> tuple[DeviceClass, ...]:
    """A GPU and a NIC of one NUMA node, one larger than the other."""
    return tuple(
        DeviceClass(
            f"nested-{number}",
            members=(Member(f"class-{number}"), Member(f"class-{12 + number}")),
            same=("numa",),
        )
        for number in range(count)
    )


def loaded(
    fleet: Sequence[tuple[str, list[Device]]], classes: Sequence[DeviceClass]
) -> DeviceInventory:
    inventory = DeviceInventory(Rows())
    for cls in classes:
        inventory.set_class(cls)
    for node, devices in fleet:
        inventory.set_node(node, devices)
    return inventory


def requests_for(chance: random.Random) -> list[DeviceRequest]:
    """A GPU, a NIC, or both; some pods ask for two classes that overlap."""
    gpu, nic = (
        DeviceRequest(f"class-{chance.randrange(12)}", 1),
        DeviceRequest(f"class-{12 + chance.randrange(6)}", 1),
    )
    other = DeviceRequest(f"class-{18 + chance.randrange(12)}", 1)
    return chance.choice(([gpu], [nic], [gpu, nic], [gpu, other]))


def pod_events(inventory: DeviceInventory, pods: int) -> tuple[Times, int]:
    """Pods come, and every third goes again; the statuses that changed are read after each."""
    chance = random.Random(2)
    times, held = Times(), 0
    for number in range(pods):
        requests = requests_for(chance)
        rows = inventory.fits(requests).nonzero()[0]
        if not len(rows):
            continue
        node = f"node-{chance.choice(rows.tolist()):05}"
        holdings = inventory.choose(node, requests)
        assert holdings is not None
        with times.one():
            inventory.hold(f"pod-{number}", node, holdings)
            inventory.changed_classes()
        held += len(holdings)
        if number % 3 == 2:
            with times.one():
                inventory.release(f"pod-{number}")
                inventory.changed_classes()
            held -= len(holdings)
    return times, held


def placements(inventory: DeviceInventory, pods: int, strategy: Strategy) -> Times:
    chance = random.Random(3)
    times = Times()
    for number in range(pods):
        requests = requests_for(chance)
        with times.one():
            fit = inventory.fits(requests, strategy)
            if fit.any():
                best = int((inventory.scores(requests, strategy) + fit).argmax())
                node = f"node-{best:05}"
                holdings = inventory.choose(node, requests, strategy)
                assert holdings is not None
                inventory.hold(f"pod-{number}", node, holdings)
    return times
