"""Ports of intents: what the HTTP edge asks of deployments, and whom the document store tells.

`service/intents` implements the actions; `cli.run.worker` puts them into the server's backend. A
hook is called inside the transaction that keeps or drops a document, so that what follows from it
is kept or dropped with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.ledger.database.protocol import Transaction
from dovetail.service.claims import NothingFits

Answer: TypeAlias = Mapping[str, Any]
"""A document that can be written as JSON."""
GroupPath: TypeAlias = str
"""`projects/P/composite-apps/C/V/deployment-intent-groups/G`."""


class WrongState(DovetailError):
    """What was asked for cannot be done with a group in this state."""


class Infeasible(NothingFits):
    """No choice of clusters serves the group."""

    def __init__(self, summary: str, reasons: Sequence[Any] = (), **more: Any) -> None:
        self.reasons = list(reasons)
        """One for each app and cluster, as JSON."""
        self.more = more
        """What else the answer shows, by name."""
        super().__init__(summary)


class StatusQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of a group's status is shown, as EMCO's query parameters name it."""

    instance: str = ""
    kind: str = "ready"
    """`ready` or `deployed` (older: `rsync`): what clusters show, or what was sent to them."""
    output: str = "all"
    """`summary`, `all` or `detail`."""
    apps: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()


class IntentActions(Protocol):
    """All raise NotFound, WrongState, Infeasible and Malformed."""

    async def approve(self, group: GroupPath) -> Answer: ...

    async def instantiate(self, group: GroupPath) -> Answer: ...

    async def terminate(self, group: GroupPath) -> Answer: ...

    async def stop(self, group: GroupPath) -> Answer: ...

    async def update(self, group: GroupPath, *, replace: bool) -> Answer:
        """`replace`: also objects that can only be deleted and made anew."""
        ...

    async def rollback(self, group: GroupPath, *, revision: int) -> Answer: ...

    async def status(self, group: GroupPath, asked: StatusQuery) -> Answer: ...

    async def plan(self, group: GroupPath) -> Answer:
        """Candidates, the pick, and edited manifests; nothing is claimed or sent."""
        ...

    async def explain(self, group: GroupPath, *, app: str, cluster: str | None) -> Answer: ...


class KeptObject(msgspec.Struct, frozen=True, kw_only=True):
    """A document as it is kept."""

    path: str
    kind: str
    document: Mapping[str, Any]
    """In its canonical form."""
    files: Mapping[str, bytes] = {}
    """Only those that came with it. Of a cluster: `kubeconfig`, or `snapshot` as JSON (which is not
    kept with the document)."""


class ObjectHook(Protocol):
    """Whoever has to act on documents of a kind. What it raises undoes the change."""

    def kept(self, tx: Transaction, written: KeptObject) -> None:
        """It is new, or was replaced."""
        ...

    def dropping(self, tx: Transaction, path: str) -> None:
        """It is about to go; raise InUse or WrongState if it must not."""
        ...
