"""Reading of a group: its documents from the ledger, its apps rendered, put together for a plan.

One transaction reads all documents, so that a plan never sees half a change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from dovetail.aio.thread_results import result_of
from dovetail.core.errors import Malformed, NotFound
from dovetail.intents.assembling import GroupDocuments, WrittenDocument, group_of
from dovetail.intents.controllers import ControllerSpec, Roster, controller_spec, roster_of
from dovetail.intents.documents.kinds import KINDS, composite_of, project_of
from dovetail.intents.group import DeploymentGroup, GroupApp, ManifestObject
from dovetail.ledger import Ledger, Transaction
from dovetail.ledger.intents import objects
from dovetail.ledger.intents.objects import IntentObject
from dovetail.service.intents.known import GROUP, KnownDeployment, known_deployment

APP, PROFILE = KINDS["app"], KINDS["profile"]
MOST_RENDERED = 256
"""Renderings that are kept: charts take a second, and a plan is made again and again."""


class AppFiles(msgspec.Struct, frozen=True, kw_only=True):
    """What the objects of an app are rendered from."""

    app: str
    file: bytes
    profile: bytes | None
    release: str
    namespace: str
    values: Mapping[str, str]
    """That override all others."""

    @property
    def digest(self) -> str:
        about = msgspec.json.encode(
            (self.app, self.release, self.namespace, sorted(self.values.items()))
        )
        parts = (about, self.file, self.profile or b"")
        sizes = b"".join(len(each).to_bytes(8) for each in parts)
        return hashlib.sha256(sizes + b"".join(parts)).hexdigest()


class AppRenderer(Protocol):
    async def __call__(self, files: AppFiles) -> tuple[ManifestObject, ...]:
        """The objects of an app. Raises Malformed."""
        ...


class ReadGroup(msgspec.Struct, frozen=True):
    group: DeploymentGroup
    roster: Roster


class StoredGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group as the ledger has it, before anything is rendered."""

    documents: GroupDocuments
    apps: tuple[AppFiles, ...]
    controllers: Mapping[str, ControllerSpec]


class GroupReader:
    def __init__(self, ledger: Ledger, render: AppRenderer) -> None:
        self._ledger, self._render = ledger, render
        self._rendered: dict[str, tuple[ManifestObject, ...]] = {}

    async def read(self, path: str) -> ReadGroup:
        """Raises NotFound; Malformed for what cannot be rendered."""
        stored = await result_of(self._ledger.read(lambda tx: stored_group(tx, path)))
        apps = [GroupApp(name=each.app, objects=await self._objects(each)) for each in stored.apps]
        roster = roster_of(stored.documents.controller_maps, stored.controllers)
        return ReadGroup(group_of(stored.documents, apps), roster)

    async def roster(self, path: str) -> Roster:
        """Whom the group calls now. Raises NotFound."""
        stored = await result_of(self._ledger.read(lambda tx: stored_group(tx, path)))
        return roster_of(stored.documents.controller_maps, stored.controllers)

    async def known(self, path: str) -> KnownDeployment:
        """What is deployed of it. Raises NotFound."""
        return await result_of(self._ledger.read(lambda tx: known_deployment(tx, path, "")))

    async def _objects(self, files: AppFiles) -> tuple[ManifestObject, ...]:
        if not files.file:
            return ()
        digest = files.digest
        found = self._rendered.pop(digest, None)
        if found is None:
            try:
                found = await self._render(files)
            except Malformed as error:
                raise Malformed(f"app {files.app}: {error}") from error
        self._rendered[digest] = found
        if len(self._rendered) > MOST_RENDERED:
            del self._rendered[next(iter(self._rendered))]
        return found


def stored_group(tx: Transaction, path: str) -> StoredGroup:
    found = objects.find(tx, path, GROUP.name)
    if found is None:
        raise NotFound(f"there is no {GROUP.name} {path.rpartition('/')[2]!r}")
    group = written(found)
    cloud = f"{project_of(path)}/logical-clouds/{group.spec.get('logicalCloud', '')}"
    kept_cloud = objects.find(tx, cloud, "logical-cloud")
    documents = GroupDocuments(
        group=group,
        below=[written(each) for each in objects.subtree(tx, path)],
        cloud=None if kept_cloud is None else written(kept_cloud),
        cluster_references=[
            written(each) for each in objects.listing(tx, cloud, "cluster-reference")
        ],
    )
    return StoredGroup(
        documents=documents,
        apps=tuple(app_files(tx, documents)),
        controllers=controllers(tx),
    )


def app_files(tx: Transaction, documents: GroupDocuments) -> list[AppFiles]:
    """In the order in which the apps were made."""
    group = documents.group
    composite = composite_of(group.path)
    apps = objects.listing(tx, composite, APP.name)
    profiles = f"{composite}/composite-profiles/{group.spec.get('compositeProfile', '')}"
    profile_of = {
        written(each).spec.get("app"): each.path
        for each in objects.listing(tx, profiles, PROFILE.name)
    }
    overrides = {each["app"]: each["values"] for each in group.spec.get("overrideValues", ())}
    files = objects.files(tx, [*(each.path for each in apps), *profile_of.values()])
    return [
        AppFiles(
            app=each.name,
            file=files.get((each.path, APP.file), b""),
            profile=files.get((profile_of.get(each.name, ""), PROFILE.file)),
            release=group.spec.get("version", group.name),
            namespace=documents.namespace,
            values=overrides.get(each.name, {}),
        )
        for each in apps
    ]


def controllers(tx: Transaction) -> dict[str, ControllerSpec]:
    """Registrations; one that has the name of a built-in one stands for it and says nothing."""
    found = {}
    for each in objects.of_kind(tx, "controller"):
        try:
            found[each.name] = controller_spec(each.name, written(each).spec)
        except Malformed:
            continue
    return found


def written(found: IntentObject) -> WrittenDocument:
    body = msgspec.json.decode(found.text, type=dict[str, Any])
    return WrittenDocument(found.path, found.kind, body)
