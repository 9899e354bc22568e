"""The fleet both servers are given: hosts of 13 providers each, about 40% of them in use.

A host is made from the seed and its own number alone, so that the same fleet comes out
again host by host, at any size, without being held in memory.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import orjson

SEED = 20
PROVIDERS_PER_HOST = 13
OCCUPANCY = 0.4

DISK_GB = 2000
VCPU = 32
MEMORY_MB = 131_072
VFS = 8

CUSTOM_TRAITS = (
    "CUSTOM_HW_NIC_ROOT",
    "CUSTOM_PHYSNET_A",
    "CUSTOM_PHYSNET_B",
    "CUSTOM_FPGA_MODEL_X",
)

PROJECT = "bench-project"
USER = "bench-user"
CONSUMER_TYPE = "INSTANCE"


@dataclass(frozen=True, slots=True)
class Provider:
    name: str
    uuid: str
    parent: str | None
    inventories: dict[str, int]
    traits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Consumer:
    uuid: str
    allocations: dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Host:
    """One tree, parents before children, with the consumers that hold parts of it."""

    providers: tuple[Provider, ...]
    consumers: tuple[Consumer, ...]


def generate(count: int) -> Iterator[Host]:
    for number in range(count):
        yield _host(number)


def ndjson(count: int) -> Iterator[bytes]:
    """The same fleet as the body of one bulk load, in pieces of some hundred kilobytes."""
    piece: list[bytes] = []
    for number, host in enumerate(generate(count), start=1):
        piece.append(orjson.dumps(_tree(host)))
        piece.extend(orjson.dumps(_consumer_line(consumer)) for consumer in host.consumers)
        if number % 100 == 0:
            yield b"\n".join(piece) + b"\n"
            piece.clear()
    if piece:
        yield b"\n".join(piece) + b"\n"


def _host(number: int) -> Host:
    rng = random.Random(f"{SEED}/{number}")
    name = f"host-{number:06d}"
    root = Provider(name, _uuid(rng), None, {"DISK_GB": DISK_GB}, ())
    providers = [root]
    consumers: list[Consumer] = []
    for numa in range(2):
        part = _numa(rng, f"{name}-numa{numa}", root.uuid)
        providers += part
        consumers += _occupy(rng, root, part)
    return Host(tuple(providers), tuple(consumers))


def _numa(rng: random.Random, name: str, root: str) -> list[Provider]:
    """A NUMA node, its NIC, the NIC's two physical functions, and two FPGAs, in this order."""
    numa, nic = _uuid(rng), _uuid(rng)
    memory = {"VCPU": VCPU, "MEMORY_MB": MEMORY_MB}
    return [
        Provider(name, numa, root, memory, ("HW_NUMA_ROOT",)),
        Provider(f"{name}-nic", nic, numa, {}, ("CUSTOM_HW_NIC_ROOT",)),
        *(
            Provider(
                f"{name}-pf-{net.lower()}",
                _uuid(rng),
                nic,
                {"SRIOV_NET_VF": VFS},
                (f"CUSTOM_PHYSNET_{net}",),
            )
            for net in "AB"
        ),
        *(
            Provider(f"{name}-fpga{slot}", _uuid(rng), numa, {"FPGA": 1}, ("CUSTOM_FPGA_MODEL_X",))
            for slot in range(2)
        ),
    ]


def _occupy(rng: random.Random, root: Provider, part: list[Provider]) -> Iterator[Consumer]:
    """Give each half of a NUMA node to a consumer, or to none.

    The halves are unequal by a random shift that cancels out: both together fill the node
    exactly, and half a node is the mean.
    """
    numa, _, pf_a, pf_b, *fpgas = part
    shift = rng.randint(-4, 4)
    for fpga, sign in zip(fpgas, (1, -1), strict=True):
        uuid = _uuid(rng)
        if rng.random() >= OCCUPANCY:
            continue
        vfs = {"SRIOV_NET_VF": VFS // 2 + sign * int(shift / 2)}
        yield Consumer(
            uuid,
            {
                root.uuid: {"DISK_GB": DISK_GB // 4 + sign * shift * 25},
                numa.uuid: {
                    "VCPU": VCPU // 2 + sign * shift,
                    "MEMORY_MB": MEMORY_MB // 2 + sign * shift * 4096,
                },
                pf_a.uuid: vfs,
                pf_b.uuid: vfs,
                fpga.uuid: {"FPGA": 1},
            },
        )


def _uuid(rng: random.Random) -> str:
    return str(UUID(int=rng.getrandbits(128), version=4))


def _tree(host: Host) -> dict[str, object]:
    root, *below = host.providers
    nodes = {root.uuid: _node(root)}
    for provider in below:
        assert provider.parent is not None
        node = nodes[provider.uuid] = _node(provider)
        siblings = nodes[provider.parent].setdefault("children", [])
        assert isinstance(siblings, list)
        siblings.append(node)
    return nodes[root.uuid]


def _node(provider: Provider) -> dict[str, object]:
    return {
        "name": provider.name,
        "uuid": provider.uuid,
        "traits": provider.traits,
        "inventories": provider.inventories,
    }


def _consumer_line(consumer: Consumer) -> dict[str, object]:
    return {
        "consumer": consumer.uuid,
        "project_id": PROJECT,
        "user_id": USER,
        "consumer_type": CONSUMER_TYPE,
        "allocations": consumer.allocations,
    }
