"""GPUs of a pool that others hold in the ledger: stock keeps clear of them, and says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from dovetail.devices.allocation.request import DeviceHolding
from dovetail.ledger import opened
from dovetail.service.device_claims import DeviceLedger
from tests.kube.machines.bed import RTX, Bed, machine_bed
from tests.kube.machines.corner import Corner, corner_of, types

PRODUCT = RTX["nvidia.com/gpu.product"]
GPUS = "nvidia.com.gpu"


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with machine_bed(tmp_path_factory.mktemp("gpus")) as running:
        yield running


@pytest.fixture
def corner(bed: Bed) -> Iterator[Corner]:
    with corner_of(bed) as made:
        yield made


def with_gpu(available: int) -> dict[str, Any]:
    gpu = {"type": "nvidia.com/gpu", "num": 1, "product": PRODUCT}
    return {
        "name": "small",
        "spec": {"cpu": "2", "memory": "4Gi", "gpu": gpu},
        "available": available,
    }


async def test_what_another_holds_is_no_stock_until_it_is_given_back(corner: Corner) -> None:
    nodes = corner.add_nodes(2, more={"nvidia.com/gpu": "2"}, labels=RTX)
    corner.sell(types(nodes, with_gpu(3)))
    held = corner.bed.by_node({pod["metadata"]["name"]: pod for pod in corner.stock()})
    (free,) = [node for node in nodes if held[node] < 2]
    other = str(uuid4())
    with opened(corner.bed.database) as ledger:
        devices = DeviceLedger(ledger)
        await devices.claim(other, "ns", "somebody", free, [DeviceHolding(GPUS, 1, "gpu")])
        corner.bed.edit_machine(
            corner.group, lambda spec: spec["machineTypes"][0].update(available=4)
        )
        message = corner.await_condition("StockShort", "True", "NoRoom")
        assert "1 of small" in message
        corner.await_usage(4, 3, 0, 0)
        for n in range(4):
            corner.guest(f"g{n}")
        corner.await_usage(4, 0, 3, 1)
        assert list(corner.waiting().values()) == ["NoNodeFits"]
        assert await devices.release(other)
    corner.await_usage(4, 0, 4, 0)
    corner.await_condition("StockShort", "False", "StockHeld")
