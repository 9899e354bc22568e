"""Back ends (CRI proxy, NRI, CRI alone), alike for the daemon: start, stop, and their runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from dovetail.node.agent.settings import RuntimeSettings
from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.ports import AdmissionPort, Runtime
from dovetail.node.cri.client import CriRuntime
from dovetail.node.cri_proxy.decisions import CallDecisions
from dovetail.node.cri_proxy.proxy import Proxy
from dovetail.node.cri_proxy.remote_decisions import decision_server
from dovetail.node.nri.runtime import NriRuntime

GRACE_SECONDS = 30.0
"""For calls under way when the agent ends: a plugin may take 10 for each question."""


class RuntimeBackend(Protocol):
    @property
    def runtime(self) -> Runtime: ...

    async def why_not(self, settings: ContainerSettings) -> str | None:
        """As an `Injector`."""
        ...

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class CriBackend:
    """Nothing is between kubelet and runtime: containers are changed after they started."""

    def __init__(self, settings: RuntimeSettings) -> None:
        self.runtime = CriRuntime(Path(settings.socket))

    async def why_not(self, settings: ContainerSettings) -> str | None:  # noqa: ARG002
        return (
            "the back end cri sees containers after they started, and can bring no device into "
            "them: runtime.backend has to be proxy or nri"
        )

    async def start(self) -> None:
        return

    async def stop(self) -> None:
        await self.runtime.close()


class ProxyBackend:
    """The proxy lets pods in; containers are seen and changed at the runtime itself."""

    def __init__(self, settings: RuntimeSettings, manager: AdmissionPort) -> None:
        self.runtime = CriRuntime(Path(settings.socket))
        self._proxy = Proxy(Path(settings.listen), Path(settings.socket), manager)

    async def why_not(self, settings: ContainerSettings) -> str | None:
        return await self.runtime.why_no_cdi() if settings.cdi_devices else None

    async def start(self) -> None:
        await self._proxy.start()

    async def stop(self) -> None:
        await self._proxy.stop(GRACE_SECONDS)
        await self.runtime.close()


class RelayedBackend:
    """A relay stands where the proxy would, and asks us; it goes on while we are away."""

    def __init__(self, settings: RuntimeSettings, manager: AdmissionPort) -> None:
        assert settings.relay is not None
        self.runtime = CriRuntime(Path(settings.socket))
        self._decisions = CallDecisions(Path(settings.socket), manager)
        self._server = decision_server(Path(settings.relay), self._decisions.handlers)

    async def why_not(self, settings: ContainerSettings) -> str | None:
        return await self.runtime.why_no_cdi() if settings.cdi_devices else None

    async def start(self) -> None:
        self._decisions.start()
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop(GRACE_SECONDS)
        await self._decisions.stop()
        await self.runtime.close()


class NriBackend:
    """A plugin of the runtime, by NRI; containers are seen at the runtime itself."""

    def __init__(self, settings: RuntimeSettings, manager: AdmissionPort) -> None:
        self._seen = CriRuntime(Path(settings.socket))
        self.runtime = NriRuntime(Path(settings.nri_socket), self._seen, manager)

    async def why_not(self, settings: ContainerSettings) -> str | None:
        if not settings.cdi_devices:
            return None
        return self.runtime.why_no_cdi() or await self._seen.why_no_cdi()

    async def start(self) -> None:
        await self.runtime.start()

    async def stop(self) -> None:
        await self.runtime.stop()
        await self._seen.close()


def backend_of(settings: RuntimeSettings, manager: AdmissionPort) -> RuntimeBackend:
    if settings.backend == "proxy" and settings.relay is not None:
        return RelayedBackend(settings, manager)
    if settings.backend == "proxy":
        return ProxyBackend(settings, manager)
    return NriBackend(settings, manager) if settings.backend == "nri" else CriBackend(settings)
