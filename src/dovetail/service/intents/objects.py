"""Use cases of the document store: create, replace and drop documents, each in one transaction.

The HTTP edge calls them with what `intents/documents` has checked. They see to it that parents are
there, that nothing goes while something is below it or refers to it, and that hooks of a kind
(`service/intents/ports.py`) act in the same transaction or undo it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from dovetail.core.errors import AlreadyExists, InUse, NotFound
from dovetail.intents.documents.errors import unmet
from dovetail.intents.documents.kinds import KINDS, DocumentKind
from dovetail.ledger.database.protocol import Transaction
from dovetail.ledger.intents import objects
from dovetail.ledger.intents.objects import IntentObject
from dovetail.service.intents.ports import KeptObject, ObjectHook, WrongState

Hooks = Mapping[str, ObjectHook]
"""By kind."""
Json = dict[str, Any]

STATE = "state"
"""Of a logical cloud, beside what its user wrote."""
INSTANTIATED, TERMINATED = "Instantiated", "Terminated"


class ObjectNotFound(NotFound):
    def __init__(self, kind: DocumentKind, name: str) -> None:
        self.kind = kind
        super().__init__(f"there is no {kind.name} {name!r}")


class ParentNotFound(NotFound):
    def __init__(self, kind: DocumentKind, name: str) -> None:
        self.kind = kind
        super().__init__(f"there is no {kind.parent} {name!r}")


class ObjectExists(AlreadyExists):
    def __init__(self, kind: DocumentKind, name: str) -> None:
        self.kind = kind
        super().__init__(f"there is a {kind.name} {name!r} already")


class ProfileExists(AlreadyExists):
    """An app has one profile in a set of them."""

    def __init__(self, app: str, profile: str) -> None:
        super().__init__(f"app {app!r} has the profile {profile!r} already")


class HasChildren(InUse):
    def __init__(self, path: str, child: str) -> None:
        super().__init__(f"{child} is below {path}, and has to be deleted first")


class IsReferenced(InUse):
    def __init__(self, path: str, by: str) -> None:
        super().__init__(f"{path} is referred to by {by}, which has to be deleted first")


class CloudInWrongState(WrongState):
    def __init__(self, message: str, emco: str) -> None:
        self.emco = emco
        """As EMCO's clients know it."""
        super().__init__(message)


class SentDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A document that was read, and where it belongs."""

    kind: DocumentKind
    path: str
    parent: str | None
    document: Json
    """In its canonical form, without what is secret."""
    files: Mapping[str, bytes] | None = None
    """To be kept with it; None: those that are there stay."""
    passing: Mapping[str, bytes] = {}
    """For hooks alone."""


def document_of(found: IntentObject) -> Json:
    """What its user wrote."""
    document = msgspec.json.decode(found.text, type=dict[str, Any])
    document.pop(STATE, None)
    return document


def last_name(path: str) -> str:
    return path.rpartition("/")[2]


# -- reading -------------------------------------------------------------------------------------


def get(tx: Transaction, kind: DocumentKind, path: str) -> IntentObject:
    found = objects.find(tx, path, kind.name)
    if found is None:
        raise ObjectNotFound(kind, last_name(path))
    return found


def refuse_without_parent(tx: Transaction, kind: DocumentKind, parent: str | None) -> None:
    if parent is not None:
        assert kind.parent is not None
        if objects.find(tx, parent, kind.parent) is None:
            raise ParentNotFound(kind, last_name(parent))


def children_of(tx: Transaction, found: IntentObject, kind: str) -> list[Json]:
    return [document_of(each) for each in objects.listing(tx, found.path, kind)]


# -- writing -------------------------------------------------------------------------------------


def refuse_with_children(tx: Transaction, path: str) -> None:
    child = objects.first_child(tx, path)
    if child is not None:
        raise HasChildren(path, child)


def create(tx: Transaction, hooks: Hooks, sent: SentDocument) -> None:
    parent = _locked_parent(tx, sent)
    if objects.find(tx, sent.path, sent.kind.name) is not None:
        raise ObjectExists(sent.kind, last_name(sent.path))
    _check_beside(tx, sent, parent)
    _lock_references(tx, sent)
    text = msgspec.json.encode(sent.document).decode()
    objects.add(tx, sent.path, sent.parent, sent.kind.name, text)
    _keep(tx, hooks, sent)


def replace(tx: Transaction, hooks: Hooks, sent: SentDocument, *, may_create: bool) -> bool:
    """Whether it had to be made. `may_create` is EMCO's way: children do not matter, either."""
    parent = _locked_parent(tx, sent)
    found = objects.find_locked(tx, sent.path, sent.kind.name)
    if found is None:
        if not may_create:
            raise ObjectNotFound(sent.kind, last_name(sent.path))
        create(tx, hooks, sent)
        return True
    if sent.kind.is_settled_by_children and not may_create:
        refuse_with_children(tx, found.path)
    _check_beside(tx, sent, parent)
    _lock_references(tx, sent)
    state = msgspec.json.decode(found.text, type=dict[str, Any]).get(STATE)
    document = sent.document if state is None else {**sent.document, STATE: state}
    objects.change(tx, found.path, msgspec.json.encode(document).decode())
    _keep(tx, hooks, sent)
    return False


def drop(tx: Transaction, hooks: Hooks, kind: DocumentKind, path: str) -> None:
    found = objects.find_locked(tx, path, kind.name)
    if found is None:
        raise ObjectNotFound(kind, last_name(path))
    refuse_with_children(tx, path)
    by = objects.referring(tx, path)
    if by:
        raise IsReferenced(path, by[0])
    if cloud_state(found) == INSTANTIATED:
        raise CloudInWrongState(
            "the logical cloud is instantiated: terminate it first",
            "The Logical Cloud is instantiated, please terminate first",
        )
    if kind.name in hooks:
        hooks[kind.name].dropping(tx, path)
    objects.remove(tx, path)


def clear(tx: Transaction, hooks: Hooks, kind: DocumentKind, parent: str | None) -> None:
    """Drop all of a kind below `parent`, or none."""
    for each in objects.listing(tx, parent, kind.name):
        drop(tx, hooks, kind, each.path)


def _locked_parent(tx: Transaction, sent: SentDocument) -> IntentObject | None:
    if sent.parent is None:
        return None
    assert sent.kind.parent is not None
    found = objects.find_locked(tx, sent.parent, sent.kind.parent)
    if found is None:
        raise ParentNotFound(sent.kind, last_name(sent.parent))
    return found


def _lock_references(tx: Transaction, sent: SentDocument) -> None:
    objects.lock(tx, sent.kind.references(sent.path, sent.document))


def _keep(tx: Transaction, hooks: Hooks, sent: SentDocument) -> None:
    objects.refer(tx, sent.path, sent.kind.references(sent.path, sent.document))
    if sent.files is not None:
        objects.put_files(tx, sent.path, sent.files)
    if sent.kind.name in hooks:
        hooks[sent.kind.name].kept(
            tx,
            KeptObject(
                path=sent.path,
                kind=sent.kind.name,
                document=sent.document,
                files={**(sent.files or {}), **sent.passing},
            ),
        )


# -- what documents demand of those beside and above them ----------------------------------------


def _check_beside(tx: Transaction, sent: SentDocument, parent: IntentObject | None) -> None:
    check = _CHECKS.get(sent.kind.name)
    if check is not None and parent is not None:
        check(tx, sent, parent)


def _check_requirement(_tx: Transaction, sent: SentDocument, parent: IntentObject) -> None:
    """Who asks for an amount needs a container to give it to.

    By EMCO's rules a form that does not agree is told after the consumer was looked at; by ours no
    such document gets here.
    """
    spec, consumer = sent.document["spec"], document_of(parent)["spec"]
    if spec["allocatable"] and not consumer.get("container"):
        told = f"consumer {parent.name!r} names no container for an allocatable resource"
        raise unmet("spec.allocatable", told, "param[] is empty")
    resource, name = spec["resource"], sent.document["metadata"]["name"]
    if spec["allocatable"] == ("key" in resource):
        told = "resource-spec allocatable and resource field value mismatch."
        raise unmet("spec.allocatable", told, _emco_refusal(told, name, spec))
    if "limits" in resource and "requests" in resource and _is_more(resource):
        told = "resource-spec requests must be less or equal to limits."
        raise unmet("spec.resource.requests", told, _emco_refusal(told, name, spec))


def _is_more(resource: Json) -> bool:
    requests, limits = resource["requests"], resource["limits"]
    return isinstance(requests, int) and isinstance(limits, int) and requests > limits


def _emco_refusal(told: str, name: str, spec: Json) -> str:
    shown = msgspec.json.encode(spec).decode()
    return (
        f"JsonSchemaValidation: Document Validation failed .. {told} "
        f"hpa-resource-name[{name}] hpa-resource-spec[{shown}]"
    )


def _check_one_profile(tx: Transaction, sent: SentDocument, parent: IntentObject) -> None:
    app = sent.document["spec"]["app"]
    for each in objects.listing(tx, parent.path, sent.kind.name):
        if each.path != sent.path and document_of(each)["spec"].get("app") == app:
            raise ProfileExists(app, each.name)


_CHECKS: Mapping[str, Callable[[Transaction, SentDocument, IntentObject], None]] = {
    "hpa-requirement": _check_requirement,
    "profile": _check_one_profile,
}


# -- logical clouds ------------------------------------------------------------------------------

CLOUD = KINDS["logical-cloud"]


def cloud_state(found: IntentObject) -> str:
    if found.kind != CLOUD.name:
        return ""
    state: str = msgspec.json.decode(found.text, type=dict[str, Any]).get(STATE, "Created")
    return state


def instantiate_cloud(tx: Transaction, path: str) -> None:
    """From now on groups may be deployed to it; clusters get nothing of it by itself."""
    found = _locked_cloud(tx, path)
    if cloud_state(found) == INSTANTIATED:
        raise CloudInWrongState(
            "the logical cloud is instantiated already", "The Logical Cloud is already instantiated"
        )
    if not objects.listing(tx, path, "cluster-reference", limit=1):
        raise unmet(
            "cluster-references",
            "the logical cloud has no clusters",
            "No Cluster References associated",
        )
    _set_cloud_state(tx, found, INSTANTIATED)


def terminate_cloud(tx: Transaction, path: str) -> None:
    found = _locked_cloud(tx, path)
    if cloud_state(found) == TERMINATED:
        raise CloudInWrongState(
            "the logical cloud is terminated already",
            "The Logical Cloud has already been terminated",
        )
    if cloud_state(found) != INSTANTIATED:
        raise CloudInWrongState(
            "the logical cloud is not instantiated", "The Logical Cloud is not instantiated"
        )
    _set_cloud_state(tx, found, TERMINATED)


def _locked_cloud(tx: Transaction, path: str) -> IntentObject:
    found = objects.find_locked(tx, path, CLOUD.name)
    if found is None:
        raise ObjectNotFound(CLOUD, last_name(path))
    return found


def _set_cloud_state(tx: Transaction, found: IntentObject, state: str) -> None:
    document = {**msgspec.json.decode(found.text, type=dict[str, Any]), STATE: state}
    objects.change(tx, found.path, msgspec.json.encode(document).decode())


def clusters_with_label(tx: Transaction, clusters: Sequence[IntentObject], label: str) -> list[str]:
    """Names of those that have it."""
    return [
        each.name
        for each in clusters
        if objects.find(tx, f"{each.path}/labels/{label}", "cluster-label") is not None
    ]
