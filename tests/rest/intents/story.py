"""A life of every kind of document, as requests that all succeed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dovetail.intents.documents.kinds import KINDS, DocumentKind
from tests.rest.intents.client import CPU, named

Json = dict[str, Any]
Step = tuple[str, str, Any]

BODIES: dict[str, Json] = {
    "composite-app": named("n", compositeAppVersion="v1"),
    "profile": named("n", app="a"),
    "deployment-intent-group": named(
        "n", compositeProfile="f", version="r1", logicalCloud="l", overrideValues=[]
    ),
    "group-intent": named("n", intent={"genericPlacementIntent": "g"}),
    "app-intent": named("n", app="a", intent={"anyOf": []}),
    "affinity-intent": named("n", app="a", deny=["b"]),
    "hpa-intent": named("n", app="a"),
    "hpa-consumer": named("n", name="d", container="x"),
    "hpa-requirement": named("n", **CPU),
    "cluster-reference": named("n", clusterProvider="p", cluster="c"),
    "cluster-label": {"clusterLabel": "n"},
    **dict.fromkeys(
        ("controller", "clm-controller", "dcm-controller", "dtc-controller"),
        named("n", host="localhost", port=9000),
    ),
}


def body_of(kind: DocumentKind) -> Json:
    """Of a document that is called `n`, in version `v1` if it has one."""
    return BODIES.get(kind.name, named("n"))


def collection_of(kind: DocumentKind) -> str:
    above = one_of(KINDS[kind.parent]) if kind.parent else ""
    return f"{above}/{kind.collection}".lstrip("/")


def one_of(kind: DocumentKind) -> str:
    names = ("n", "v1") if kind.name == "composite-app" else ("n",)
    return "/".join((collection_of(kind), *names))


def document_story() -> Iterator[Step]:
    """Paths are without a slash before them, and without `v2/`."""
    for kind in KINDS.values():
        yield "POST", collection_of(kind), body_of(kind)
        yield "GET", collection_of(kind), None
        yield "GET", one_of(kind), None
        if not kind.is_settled_by_children:
            yield "PUT", one_of(kind), body_of(kind)
    for kind in reversed(tuple(KINDS.values())):
        if kind.is_settled_by_children:
            yield "PUT", one_of(kind), body_of(kind)
        yield "DELETE", one_of(kind), None
        yield "DELETE", collection_of(kind), None


def cloud_story() -> Iterator[Step]:
    """What is done with a logical cloud."""
    cloud = one_of(KINDS["logical-cloud"])
    for name in ("project", "logical-cloud", "cluster-reference"):
        yield "POST", collection_of(KINDS[name]), body_of(KINDS[name])
    yield "GET", f"{cloud}/status", None
    yield "POST", f"{cloud}/instantiate", None
    yield "POST", f"{cloud}/terminate", None
    for name in ("cluster-reference", "logical-cloud", "project"):
        yield "DELETE", one_of(KINDS[name]), None


def parents_story() -> Iterator[Step]:
    """One of every kind, which stay."""
    for kind in KINDS.values():
        yield "POST", collection_of(kind), body_of(kind)


def action_story() -> Iterator[Step]:
    """What is done with a group."""
    group = one_of(KINDS["deployment-intent-group"])
    for verb in ("approve", "instantiate", "terminate", "stop", "update"):
        yield "POST", f"{group}/{verb}", None
    yield "POST", f"{group}/rollback", {"spec": {"revision": 1}}
    for verb in ("status", "plan", "explain?app=a"):
        yield "GET", f"{group}/{verb}", None
