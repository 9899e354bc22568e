"""The proxy alone, with a gate that lets everything pass: `python -m ... LISTEN RUNTIME`."""
# ruff: noqa: ARG002 (a gate that lets everything pass needs none of it)

import asyncio
import signal
import sys
from pathlib import Path

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Sandbox
from dovetail.node.cri_proxy.proxy import Proxy


class Open:
    async def admit_pod(self, sandbox: Sandbox) -> None:
        pass

    async def admit_container(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> ContainerSettings:
        return ContainerSettings()

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


async def main(listen: Path, runtime: Path) -> None:
    proxy = Proxy(listen, runtime, Open())
    await proxy.start()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await stop.wait()
    await proxy.stop(0)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
