"""A gate that does what a test says, and remembers what it was asked."""

from __future__ import annotations

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Sandbox
from dovetail.node.common.ports import AdmissionRejected


class Scripted:
    def __init__(self, **given: ContainerSettings) -> None:
        self.given = given
        """By name of the container."""
        self.rejects: AdmissionRejected | None = None
        self.admitted: list[Sandbox] = []
        self.asked: list[str] = []
        """Names of the containers whose settings were asked for."""
        self.made: list[tuple[str, str, str]] = []
        """Uid of the pod, name and id of the container."""
        self.left: list[str] = []
        self.resizes: list[tuple[str, str, ContainerSettings]] = []
        """Uid of the pod, name of the container, and what was asked for it."""
        self.resized: list[tuple[str, str, str]] = []
        self.not_resized: list[tuple[str, str]] = []

    async def admit_pod(self, sandbox: Sandbox) -> None:
        if self.rejects:
            raise self.rejects
        self.admitted.append(sandbox)

    async def admit_container(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> ContainerSettings:
        self.asked.append(container)
        if self.rejects:
            raise self.rejects
        return self.given.get(container, ContainerSettings())

    def current_settings(self, uid: str, container: str) -> ContainerSettings:
        if self.rejects:
            raise self.rejects
        return self.given.get(container, ContainerSettings())

    async def container_created(
        self, sandbox: Sandbox, container: str, id_: str, given: ContainerSettings
    ) -> None:
        assert given == self.given.get(container, ContainerSettings())
        self.made.append((sandbox.uid, container, id_))

    async def resize_container(
        self, sandbox: Sandbox, container: str, asked: ContainerSettings
    ) -> ContainerSettings:
        self.resizes.append((sandbox.uid, container, asked))
        return self.current_settings(sandbox.uid, container)

    async def container_resized(
        self, sandbox: Sandbox, container: str, id_: str, given: ContainerSettings
    ) -> None:
        assert given == self.given.get(container, ContainerSettings())
        self.resized.append((sandbox.uid, container, id_))

    async def resize_failed(self, sandbox: Sandbox, container: str) -> None:
        self.not_resized.append((sandbox.uid, container))

    async def sandbox_gone(self, sandbox: Sandbox) -> None:
        self.left.append(sandbox.uid)
