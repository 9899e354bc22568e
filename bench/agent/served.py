"""The proxy alone, with a gate that lets everything pass.

`python -m bench.agent.served LISTEN RUNTIME [--devices]`: with devices for every container, or
without.
"""
# ruff: noqa: ARG002 (a gate that lets everything pass needs none of it)

import asyncio
import signal
import sys
from pathlib import Path

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Sandbox
from dovetail.node.cri_proxy.proxy import Proxy
from dovetail.node.wire.resource_plugin import DeviceSpec, Mount

DEVICES = ContainerSettings(
    cpus="0-3",
    mems="0",
    envs={"VISIBLE_GPUS": "GPU-0:1,GPU-1:1", "GPU_DRIVER": "all"},
    annotations={"vendor.com/gpus": "GPU-0:1,GPU-1:1"},
    mounts=(Mount(container_path="/opt/gpu", host_path="/opt/gpu", read_only=True),),
    devices=tuple(
        DeviceSpec(container_path=path, host_path=path, permissions="rw")
        for path in ("/dev/gpu0", "/dev/gpu1", "/dev/gpuctl")
    ),
    cdi_devices=("vendor.com/gpu=0", "vendor.com/gpu=1"),
)


class Open:
    def __init__(self, given: ContainerSettings) -> None:
        self.given = given

    async def admit_pod(self, sandbox: Sandbox) -> None:
        pass

    async def admit_container(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> ContainerSettings:
        return self.given

    def current_settings(self, uid: str, container: str) -> ContainerSettings:
        return ContainerSettings()

    async def container_created(
        self, sandbox: Sandbox, container: str, id_: str, given: ContainerSettings
    ) -> None:
        pass

    async def resize_container(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> ContainerSettings:
        return ContainerSettings()

    async def container_resized(
        self, sandbox: Sandbox, container: str, id_: str, given: ContainerSettings
    ) -> None:
        pass

    async def resize_failed(self, sandbox: Sandbox, container: str) -> None:
        pass

    async def sandbox_gone(self, sandbox: Sandbox) -> None:
        pass


async def main(listen: Path, runtime: Path, given: ContainerSettings) -> None:
    proxy = Proxy(listen, runtime, Open(given))
    await proxy.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await proxy.stop(0)


if __name__ == "__main__":
    settings = DEVICES if "--devices" in sys.argv else ContainerSettings()
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), settings))
