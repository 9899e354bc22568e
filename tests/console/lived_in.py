"""The demo fleet as it looks after some use: every view of the console has something to show."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, contextmanager
from pathlib import Path

from dovetail.core.device import Device
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.ledger import open_ledger
from dovetail.service.device_claims import DeviceLedger
from dovetail.service.machine_units import MachineLedger
from tests.cli.conftest import commands, demo_server
from tests.console.conftest import Api
from tests.rest.fleets import uid
from tests.service.machine_world import GROUP as GROUP_OF_MACHINES
from tests.service.machine_world import guest, line, queued, shape, sleeper, stock
from tests.support.page import INTENT_FILES

HOST = "06019487-8219-5b22-84d2-a2af23b9e4b4"
"""rack1-host1."""
HOLDER = "c821d32e-1cd9-5e9e-9c1a-3f328ee2dbe0"
"""It has some of that host."""
WHOLE_HOST = "resources_VM0=VCPU:60&resources_VM1=VCPU:60&resources_ACC=FPGA:1"
"""It fits three hosts of the demo fleet, which are taken here; of others somebody has to leave."""
GROUP = "my-proj1/my-capp1/v1.0/my-dig1"
GPU = {"key": "Kind", "operator": "In", "values": ["gpu"]}
LARGE = {"key": "memory", "operator": "GtEq", "values": ["30G"]}
CLASSES = {"gpu": [GPU], "large-gpu": [GPU, LARGE]}


async def sell_and_publish(url: str) -> None:
    """Three large machines, one sold and one in stock, two guests in line; two nodes with GPUs, one
    of them held."""
    ledger = open_ledger(url)
    large = shape("large")
    machines = MachineLedger(ledger)
    await machines.enter_node("n1", 64, 2**20, [])
    await machines.set_stock(GROUP_OF_MACHINES, stock(3, large))
    sold = [guest(large, consumer=uid("guest")), sleeper(large, consumer=uid("sleeper"))]
    await machines.move(sold)
    why = "2 units of large are held for the window nightly"
    first = queued("next", reason="HeldForWindow", message=why)
    waiting = [first, queued("later", reason=None, message="")]
    lent = line(*waiting, lent_seconds={"large": 8 * 3600}, pods={uid("guest"): "trainer"})
    await machines.set_queues({GROUP_OF_MACHINES: lent})
    devices = DeviceLedger(ledger)
    for node, memory in (("g1", "16G"), ("g2", "80G")):
        found = [
            Device(name=f"gpu{n}", node=node, kind="gpu", properties={"memory": memory})
            for n in range(2)
        ]
        await devices.publish(node, found)
    held = [DeviceHolding("gpu0", 1, "large-gpu")]
    await devices.claim(uid("pod"), "default", "sa", "g2", held)
    ledger.close()


@contextmanager
def lived_in(folder: Path) -> Iterator[str]:
    with demo_server(folder) as url:
        api = Api(url)
        for query in (*[WHOLE_HOST] * 3, "resources=VCPU:8,MEMORY_MB:16384"):
            api.post("/dovetail/v1/claims", {"query": query})
        for name, expressions in CLASSES.items():
            spec = {"resourceSelector": [{"matchExpressions": expressions}]}
            api.put(f"/dovetail/v1/classes/{name}", {"spec": spec})
        api.close()
        ledger = f"sqlite:///{folder / 'dovetail.db'}"
        # In a thread of its own: the browser's driver has a loop in this one.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, sell_and_publish(ledger)).result()
        run = commands(url)
        with chdir(INTENT_FILES):
            for name in ("clusters", "application", "hardware"):
                done = run("intents", "apply", "-f", f"{name}.yaml")
                assert done.exit_code == 0, done.output
        yield url
