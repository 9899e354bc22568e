"""A device plugin for the resource `example.com/slot`: two slots, wiped when a pod is over."""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from dovetail.node.sdk.device_plugin import DIRECTORY, DevicePluginService, device, run
from dovetail.node.wire.device_plugin import (
    ContainerAllocateResponse,
    Device,
    DevicePluginOptions,
)
from dovetail.node.wire.resource_plugin import Mount

SLOTS = {"slot:0": 0, "slot:1": 1}
"""The NUMA node of each."""


class Slots(DevicePluginService):
    def __init__(self, directory: Path) -> None:
        super().__init__("example.com/slot", DevicePluginOptions(deallocates=True))
        self.directory = directory

    def devices(self) -> Iterable[Device]:
        return [device(id_, numa_nodes=[node]) for id_, node in SLOTS.items()]

    async def allocate(self, ids: Sequence[str]) -> ContainerAllocateResponse:
        for each in ids:
            (self.directory / each).mkdir(parents=True, exist_ok=True)
        return ContainerAllocateResponse(
            envs={"SLOTS": ",".join(ids)},
            mounts=tuple(
                Mount(container_path=f"/slots/{each}", host_path=str(self.directory / each))
                for each in ids
            ),
        )

    async def deallocate(self, ids: Sequence[str]) -> None:
        for each in ids:
            for file in (self.directory / each).glob("*"):
                file.unlink(missing_ok=True)


if __name__ == "__main__":
    run(Slots(Path(sys.argv[1])), Path(sys.argv[2]) if sys.argv[2:] else DIRECTORY)
