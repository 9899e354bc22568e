"""Injection check: no pod with devices starts where its containers would not get them.

The admission transaction asks, before plugins allocate and with what they allocated.
"""

from __future__ import annotations

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.ports import AdmissionRejected, Injector
from dovetail.node.common.reasons import CANNOT_INJECT


class InjectionCheck:
    def __init__(self) -> None:
        self.injector: Injector | None = None
        """Of the back end, as soon as there is one."""

    async def check(self, settings: ContainerSettings) -> None:
        """Raises AdmissionRejected."""
        why = await self.injector.why_not(settings) if self.injector else None
        if why:
            raise AdmissionRejected(CANNOT_INJECT, why)
