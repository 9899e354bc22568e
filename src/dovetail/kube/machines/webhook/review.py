"""Review of what is about to be written: guests when they are created, Machines when they change.

The application asks it for every AdmissionReview. It answers from what the informers of this
replica have told and changes nothing, so a dry run is a run like any other, and a pod that later
admission refuses leaves nothing behind: its unit is taken when its gate is looked at, not here.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from dovetail.kube.machines.acceptance import Accepted
from dovetail.kube.machines.judging import seller_of, standing_machines, world_of
from dovetail.kube.machines.state import MachineState
from dovetail.kube.machines.webhook.wire import (
    AdmissionRequest,
    AdmissionResponse,
    allowed,
    forbidden,
    invalid,
)
from dovetail.machines.documents import Machine
from dovetail.machines.injection import InjectionRefused, inject, patch_of
from dovetail.machines.names import MACHINE_GROUP, MACHINE_TYPE
from dovetail.machines.pods import group_of, is_guest, type_of
from dovetail.machines.selling.immediate import immediate_refusal
from dovetail.machines.shapes import shapes_of
from dovetail.machines.validation import findings
from dovetail.podfit.objects import ObjectMeta, Pod


class Reviewer:
    def __init__(
        self, state: MachineState, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._state = state
        self._clock = clock

    def guest(self, request: AdmissionRequest) -> AdmissionResponse:
        """Made one unit of its type, or refused with the reason.

        Which namespaces are opted in is decided by the API server, which asks for no others.
        """
        pod = request.object or {}
        labels = (pod.get("metadata") or {}).get("labels") or {}
        guest = Pod(metadata=ObjectMeta(namespace=request.namespace, labels=labels))
        is_asked_for = request.operation == "CREATE" and not request.sub_resource
        if not is_asked_for or not is_guest(guest) or self._is_own(request.namespace):
            return allowed(request)
        try:
            machine, accepted = self._seller(guest)
            shape = shapes_of(accepted.spec)[type_of(guest)]
            injected = inject(pod, shape, machine.group, request.user_info.username)
        except InjectionRefused as refused:
            return invalid(request, Pod.API.kind, [(refused.path, refused.message)])
        meta = replace(guest.metadata, annotations=injected["metadata"]["annotations"])
        snapshot = self._state.snapshot(machine, accepted, self._clock())
        refusal = immediate_refusal(snapshot, replace(guest, metadata=meta))
        if refusal is not None:
            return forbidden(request, f"{refusal.reason.value}: {refusal.message}")
        return allowed(request, patch_of(pod, injected))

    def _is_own(self, namespace: str) -> bool:
        return namespace == self._state.settings.namespace

    def _seller(self, guest: Pod) -> tuple[Machine, Accepted]:
        """Who sells the guest's type. Raises InjectionRefused."""
        group, name = group_of(guest), type_of(guest)
        seller = seller_of(self._state, group)
        if seller is None:
            standing = standing_machines(self._state, group)
            words = (
                f"Machine {standing[0].metadata.name}, whose group {group!r} is, is not accepted"
                if standing
                else f"there is no Machine of group {group!r}"
            )
            raise InjectionRefused(f"metadata.labels[{MACHINE_GROUP}]", words)
        known = [each.name for each in seller[1].spec.machine_types]
        if name not in known:
            raise InjectionRefused(
                f"metadata.labels[{MACHINE_TYPE}]",
                f"there is no type {name!r} in group {group!r}: it has {', '.join(known)}",
            )
        return seller

    def machine(self, request: AdmissionRequest) -> AdmissionResponse:
        """Let in, or refused with the path of each fault. What is being deleted is let in, and so
        is a change of anything but specification and group. Raises ValidationError."""
        machine = msgspec.convert(request.object, Machine)
        before = msgspec.convert(request.old_object, Machine | None)
        if before is not None and (before.spec, before.group) == (machine.spec, machine.group):
            return allowed(request)
        faults = findings(machine, world_of(self._state, machine, before))
        if not faults:
            return allowed(request)
        found = [(each.path, each.message) for each in faults]
        return invalid(request, Machine.API.kind, found)
