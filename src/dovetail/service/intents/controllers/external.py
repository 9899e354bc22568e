"""Callers of external placement controllers: ours over `dovetail.intents.v1`, EMCO's over theirs.

The fan-out gives each the group, the fleet and its registration, and gets an answer or an error of
the domain; how long that may take, is the fan-out's to say.
"""

from __future__ import annotations

from typing import Protocol

from dovetail.intents.candidates.partitions import ControllerAnswer
from dovetail.intents.controllers import ControllerCall
from dovetail.intents.fleet import FleetSnapshot
from dovetail.intents.group import DeploymentGroup
from dovetail.service.intents.controllers.contracts.placement import CANDIDATES
from dovetail.service.intents.controllers.translation import answer_of, question_of
from dovetail.wire.client import GrpcEndpoint, TlsIdentity, TlsOptions, ask, connected


class PlacementCaller(Protocol):
    """One way to ask a placement controller."""

    async def answer(
        self, call: ControllerCall, group: DeploymentGroup, fleet: FleetSnapshot, seconds: float
    ) -> ControllerAnswer:
        """Raises EndpointError, BadAnswer and Malformed."""
        ...


class TypedCaller:
    """Asks controllers that answer with candidates."""

    def __init__(self, identity: TlsIdentity | None) -> None:
        self._identity = identity

    async def answer(
        self, call: ControllerCall, group: DeploymentGroup, fleet: FleetSnapshot, seconds: float
    ) -> ControllerAnswer:
        question = question_of(group, fleet, call.intent)
        async with connected(endpoint_of(call, self._identity)) as channel:
            response = await ask(channel, CANDIDATES, question, seconds)
        return answer_of(call.name, response, [app.name for app in group.apps], fleet.clusters)


def endpoint_of(call: ControllerCall, identity: TlsIdentity | None) -> GrpcEndpoint:
    spec = call.spec
    tls = None
    if spec.tls is not None:
        tls = TlsOptions(
            authority=spec.tls.ca.encode(), server_name=spec.tls.server_name, identity=identity
        )
    return GrpcEndpoint(host=spec.host, port=spec.port, tls=tls)
