"""Controllers to be asked: a fan-out, the scenario's group and fleet, servers that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec

from dovetail.intents.candidates.partitions import ControllerAnswer, PartitionCandidates
from dovetail.intents.controllers import (
    CallTerms,
    ControllerCall,
    Roster,
    controller_spec,
    roster_of,
)
from dovetail.intents.fleet import FleetSnapshot
from dovetail.intents.group import DeploymentGroup
from dovetail.ledger import Ledger
from dovetail.service.intents.controllers.emco import placement_callers
from dovetail.service.intents.controllers.fan_out import (
    ControllerAnswers,
    ControllerFanOut,
    HpaCompute,
)
from dovetail.wire.client import TlsIdentity
from tests.service.intents.controllers.documented import THEIRS
from tests.service.intents.controllers.protos import Handler, server
from tests.support.intents.scenario import base

CANDIDATES = "/dovetail.intents.v1.PlacementController/Candidates"
ENOUGH_SECONDS = 60.0
"""A deadline that no test waits for."""


class Found(msgspec.Struct, frozen=True):
    """What the built-in `hpa` would say."""

    answer: ControllerAnswer


HPA_SAYS = Found(
    ControllerAnswer(controller="hpa", candidates=PartitionCandidates(alternatives=({},)))
)


Check = Callable[[], None]


def hpa(_: DeploymentGroup, __: FleetSnapshot, ___: Check) -> Found:
    return HPA_SAYS


@contextmanager
def fan_out(
    ledger: Ledger,
    *,
    hpa: HpaCompute[Found] = hpa,
    identity: TlsIdentity | None = None,
    seconds: float = ENOUGH_SECONDS,
) -> Iterator[ControllerFanOut[Found]]:
    made = ControllerFanOut(ledger, hpa, placement_callers(None, identity), CallTerms(seconds))
    try:
        yield made
    finally:
        made.close()


async def asked(
    controllers: ControllerFanOut[Found], *calls: ControllerCall, **roster: Any
) -> ControllerAnswers[Found]:
    scenario = base()
    return await controllers.answers(
        scenario.group, scenario.fleet, Roster(placement=calls, **roster)
    )


def call(name: str, port: int, intent: str = "west", **spec: Any) -> ControllerCall:
    """As the roster has it: of a registration's document, and a group that names it."""
    given = {"host": "127.0.0.1", "port": port, "type": "placement", "contract": "dovetail"}
    registered = controller_spec(name, {**given, "deadline": ENOUGH_SECONDS, **spec})
    (found,) = roster_of([{name: intent}], {name: registered}).placement
    return found


def allowing(app: str, *clusters: str) -> bytes:
    """An answer with one list, as another library writes it."""
    parts = [{"clusters": {"names": clusters}}]
    response = THEIRS["CandidatesResponse"](candidates=[{"apps": [{"app": app, "parts": parts}]}])
    data: bytes = response.SerializeToString()
    return data


def saying(data: bytes) -> Handler:
    async def answer(_: bytes) -> bytes:
        return data

    return answer


@asynccontextmanager
async def controller(handler: Handler, **tls: bytes) -> AsyncIterator[int]:
    """One that answers with what the handler returns; its port."""
    async with server({CANDIDATES: handler}, **tls) as port:
        yield port


@asynccontextmanager
async def listener(
    accept: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    """What accepts connections and does not speak gRPC; its port."""
    writers: list[asyncio.StreamWriter] = []

    async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        await accept(reader, writer)

    made = await asyncio.start_server(accepted, "127.0.0.1", 0)
    try:
        yield made.sockets[0].getsockname()[1]
    finally:
        made.close()
        for writer in writers:
            writer.close()


async def hang(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    """Reads whatever comes, and never says anything."""
    while await reader.read(2**16):
        pass
