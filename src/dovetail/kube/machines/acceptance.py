"""Acceptance: which specification of each Machine is in force, and what is wrong with the newest.

What the API server cannot judge (does the stock fit, who holds a node already) is judged by the
operator. A specification that it does not accept changes nothing: the last that it did stays in
force, kept in a ConfigMap so that another replica knows it, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.machines.documents import Machine, MachineSpec
from dovetail.machines.names import DOMAIN, MACHINE_GROUP
from dovetail.podfit.objects import ConfigMap

ACCEPTED = f"{DOMAIN}/accepted"
"""Label of the ConfigMaps."""


class Accepted(msgspec.Struct, frozen=True):
    """A specification in force."""

    uid: str
    """Of the Machine: one made anew under the same name is another."""
    generation: int
    spec: MachineSpec


class AcceptedSpecs:
    def __init__(self) -> None:
        self._accepted: dict[str, Accepted] = {}
        self._faults: dict[str, tuple[str, int, tuple[str, ...]]] = {}

    def of(self, machine: Machine) -> Accepted | None:
        found = self._accepted.get(machine.metadata.name)
        return found if found is not None and found.uid == machine.metadata.uid else None

    def is_current(self, machine: Machine) -> bool:
        """Whether the newest specification is the one in force."""
        found = self.of(machine)
        return found is not None and found.generation == machine.metadata.generation

    def accept(self, machine: Machine) -> None:
        meta = machine.metadata
        self.put(meta.name, Accepted(meta.uid, meta.generation, machine.spec))
        self._faults.pop(meta.name, None)

    def refuse(self, machine: Machine, faults: Iterable[str]) -> None:
        meta = machine.metadata
        self._faults[meta.name] = (meta.uid, meta.generation, tuple(faults))

    def faults_of(self, machine: Machine) -> tuple[str, ...]:
        """Of the newest specification, as far as it was judged."""
        uid, generation, faults = self._faults.get(machine.metadata.name, ("", 0, ()))
        meta = machine.metadata
        return faults if (uid, generation) == (meta.uid, meta.generation) else ()

    def put(self, name: str, accepted: Accepted) -> None:
        """The newer one stays: what another replica wrote may be heard of late."""
        there = self._accepted.get(name)
        if there == accepted:
            # What was derived of it stays, and nobody compares them again.
            return
        if there is None or there.uid != accepted.uid or there.generation <= accepted.generation:
            self._accepted[name] = accepted

    def drop(self, name: str) -> None:
        self._accepted.pop(name, None)
        self._faults.pop(name, None)


def record_name(machine: str) -> str:
    """Of the ConfigMap that keeps a Machine's accepted specification."""
    return f"{machine}.accepted"


def record_of(machine: Machine) -> dict[str, Any]:
    """The ConfigMap's fields."""
    meta = machine.metadata
    return {
        "metadata": {"labels": {ACCEPTED: "true", MACHINE_GROUP: machine.group}},
        "data": {
            "machine": meta.name,
            "uid": meta.uid,
            "generation": str(meta.generation),
            "spec": msgspec.json.encode(machine.spec).decode(),
        },
    }


def read_record(found: ConfigMap) -> tuple[str, Accepted] | None:
    """The Machine's name and what was accepted; None if the ConfigMap says no such thing."""
    data = found.data
    if ACCEPTED not in found.metadata.labels:
        return None
    try:
        spec = msgspec.json.decode(data["spec"], type=MachineSpec)
        return data["machine"], Accepted(data["uid"], int(data["generation"]), spec)
    except (KeyError, ValueError, msgspec.DecodeError, DovetailError):
        # Somebody wrote in it: what the Machine says now is judged anew.
        return None
