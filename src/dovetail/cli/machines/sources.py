"""Machines for `dovetail machines`, from a cluster and its ledger, or from files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from dovetail.cli.support.documents import documents
from dovetail.cli.support.exits import (
    LocalFailure,
    NoPermission,
    RequestRefused,
    ServerUnreachable,
)
from dovetail.core.errors import DovetailError
from dovetail.kube.api.client import connect
from dovetail.kube.api.port import ApiError, ApiNotFound, ApiUnreachable
from dovetail.kube.machines.judging import seller_of
from dovetail.kube.machines.reading import (
    empty_state,
    read_cluster,
    read_ledger,
    read_objects,
)
from dovetail.kube.machines.state import MachineState
from dovetail.ledger.database.opening import HEAD, opened, revision
from dovetail.machines.documents import Machine, MachineNodePool, MachineShape
from dovetail.machines.snapshot import MachineSnapshot, StockSettings
from dovetail.podfit.objects import (
    ConfigMap,
    KubeObject,
    Namespace,
    Node,
    Pod,
    Service,
    StatefulSet,
)
from dovetail.service.machine_units import MachineLedger

NOBODY = (401, 403)
READ: dict[tuple[str, str], type[KubeObject]] = {
    (kind.API.api_version, kind.API.kind): kind
    for kind in (
        *(Machine, MachineNodePool, MachineShape, Node, Pod, Namespace),
        *(ConfigMap, Service, StatefulSet),
    )
}


def now() -> datetime:
    return datetime.now(UTC)


# -- a cluster -------------------------------------------------------------------------------------


def read(
    *, kubeconfig: str | None, namespace: str, database: str | None, cluster: str
) -> MachineState:
    with _told():
        return asyncio.run(_read(kubeconfig, namespace, database, cluster))


def read_machines(kubeconfig: str | None) -> list[Machine]:
    """The Machines alone, with what the operator tells of them in their status."""

    async def listed() -> list[Machine]:
        async with connect(kubeconfig, agent="dovetail-machines") as api:
            return (await api.list(Machine)).items

    with _told():
        return asyncio.run(listed())


async def _read(
    kubeconfig: str | None, namespace: str, database: str | None, cluster: str
) -> MachineState:
    async with connect(kubeconfig, agent="dovetail-machines") as api:
        state = await read_cluster(api, namespace)
    if database is not None:
        if revision(database) != HEAD:
            raise LocalFailure(f"{database}: its tables are not of this version of dovetail")
        with opened(database) as ledger:
            await read_ledger(state, MachineLedger(ledger, cluster))
    return state


@contextmanager
def _told() -> Iterator[None]:
    """What goes wrong, as the exit code that it has."""
    try:
        yield
    except ApiUnreachable as error:
        raise ServerUnreachable(str(error)) from error
    except ApiNotFound as error:
        raise RequestRefused(
            f"The cluster has no machines: {error}. See `dovetail manifests --list`."
        ) from error
    except ApiError as error:
        kind = NoPermission if error.code in NOBODY else RequestRefused
        raise kind(str(error)) from error
    except DovetailError as error:
        raise LocalFailure(str(error)) from error


# -- files -----------------------------------------------------------------------------------------


def from_file(file: Path) -> MachineState:
    """Nodes, and whatever else of machines is in the file."""
    state = empty_state(StockSettings())
    read_objects(state, list(_objects(file)))
    return state


def _objects(file: Path) -> Iterator[KubeObject]:
    for at, each in enumerate(_listed(documents(file)), 1):
        kind = READ.get((str(each.get("apiVersion")), str(each.get("kind"))))
        if kind is None:
            continue
        try:
            found = msgspec.convert(each, kind)
        except msgspec.ValidationError as error:
            raise LocalFailure(f"{file}, object {at}: {error}") from error
        if not found.metadata.uid:
            # Pods are told apart by it, and files that were written by hand have none.
            meta = msgspec.structs.replace(found.metadata, uid=f"{kind.API.kind}/{found.key}")
            found = msgspec.structs.replace(found, metadata=meta)
        yield found


def _listed(found: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Objects of all documents: each is one, or a `List`."""
    for each in found:
        items = each.get("items") if isinstance(each, dict) else each
        if isinstance(items, list):
            yield from _listed(items)
        elif isinstance(each, dict):
            yield each


def machine(file: Path) -> dict[str, Any]:
    """The only Machine of a file, as it is written there."""
    found = [each for each in _listed(documents(file)) if each.get("kind") == Machine.API.kind]
    if len(found) != 1:
        raise LocalFailure(f"{file}: one Machine is expected, not {len(found)}")
    version = found[0].get("apiVersion")
    if version != Machine.API.api_version:
        raise LocalFailure(
            f"{file}: a Machine of apiVersion {version!r}: {Machine.API.api_version} is expected"
        )
    return found[0]


# -- what is asked about ---------------------------------------------------------------------------


def chosen(machines: Iterable[Machine], name: str | None) -> list[Machine]:
    """All of them by name, or the one that is meant."""
    ordered = sorted(machines, key=lambda one: one.metadata.name)
    found = [each for each in ordered if name in (None, each.metadata.name)]
    if name is not None and not found:
        known = ", ".join(each.metadata.name for each in ordered) or "none"
        raise RequestRefused(f"There is no Machine {name!r}; there is {known}.")
    return found


def snapshot_of(state: MachineState, found: Machine) -> MachineSnapshot | None:
    """None, if it sells nothing: it was not accepted, or another one sells its group."""
    seller = seller_of(state, found.group)
    if seller is None or seller[0].metadata.uid != found.metadata.uid:
        return None
    return state.snapshot(*seller, now())
