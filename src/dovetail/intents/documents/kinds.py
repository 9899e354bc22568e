"""Registry of the kinds of documents: where each stands in the tree of paths, what it looks like.

Routes, handlers and the OpenAPI description are made from it (`rest/intents`); the store asks it
for parents and references (`service/intents/objects.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from dovetail.intents.controllers import GENERIC_INTENT
from dovetail.intents.documents import apps, clouds, clusters, groups, hpa
from dovetail.intents.documents.shapes import LONGEST_NAME, NAME_PATTERN, RecordShape

Document = Mapping[str, Any]
Names = tuple[str, ...]

NAME = re.compile(NAME_PATTERN.removesuffix("$") + r"\Z")
GROUP = "deployment-intent-group"
COMPOSITE_SEGMENTS = 5
"""`projects/P/composite-apps/C/V`."""


def no_references(_path: str, _document: Document) -> Iterator[str]:
    return iter(())


def metadata_name(document: Document) -> Names:
    return (document["metadata"]["name"],)


def name_and_version(document: Document) -> Names:
    return (document["metadata"]["name"], document["spec"]["compositeAppVersion"])


def label_name(document: Document) -> Names:
    return (document["clusterLabel"],)


class DocumentKind(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """As it is stored."""
    collection: str
    """The segment of paths that its documents are below."""
    placeholders: Names
    """Of the segments that name one."""
    shape: RecordShape
    about: str
    """What one is, for descriptions."""
    parent: str | None = None
    names: Callable[[Document], Names] = metadata_name
    """The segments that name a document."""
    query: str = ""
    """The parameter by which a collection is asked for one."""
    file: str = ""
    """What the file is called that comes with it, if one can."""
    references: Callable[[str, Document], Iterator[str]] = no_references
    """Paths of objects that cannot go while it is there."""
    is_settled_by_children: bool = False
    """It cannot be replaced while something is below it."""

    def template(self) -> str:
        """The path of one, with placeholders."""
        names = "/".join(f"{{{each}}}" for each in self.placeholders)
        return f"{self.collection_template()}/{names}"

    def collection_template(self) -> str:
        above = KINDS[self.parent].template() if self.parent else ""
        return f"{above}/{self.collection}"

    def parent_path(self, params: Mapping[str, str]) -> str | None:
        """Of the object that it is below; None at the top."""
        return KINDS[self.parent].path(params) if self.parent else None

    def path(self, params: Mapping[str, str]) -> str:
        """The path of the document that the placeholders name. Raises NoSuchName."""
        names = tuple(params[each] for each in self.placeholders)
        return self.path_below(self.parent_path(params), names)

    def path_below(self, parent: str | None, names: Names) -> str:
        for name in names:
            if len(name) > LONGEST_NAME or not NAME.match(name):
                raise NoSuchName(name)
        return "/".join((*([parent] if parent else []), self.collection, *names))


class NoSuchName(LookupError):
    """A name that no document can have: nothing is there, wherever that would be."""


# -- references ----------------------------------------------------------------------------------


def composite_of(path: str) -> str:
    return "/".join(path.split("/")[:COMPOSITE_SEGMENTS])


def project_of(path: str) -> str:
    return "/".join(path.split("/")[:2])


def app_path(path: str, app: str) -> str:
    return f"{composite_of(path)}/apps/{app}"


def cluster_path(provider: str, cluster: str) -> str:
    return f"cluster-providers/{provider}/clusters/{cluster}"


def to_app(path: str, document: Document) -> Iterator[str]:
    app = document.get("spec", {}).get("app")
    if app:
        yield app_path(path, app)


def to_apps(path: str, document: Document) -> Iterator[str]:
    spec = document["spec"]
    for app in (spec["app"], *(each for key in ("deny", "require") for each in spec.get(key, ()))):
        yield app_path(path, app)


def to_app_and_clusters(path: str, document: Document) -> Iterator[str]:
    yield from to_app(path, document)
    intent = document["spec"]["intent"]
    for item in (*intent.get("allOf", ()), *intent.get("anyOf", ())):
        for term in item.get("anyOf", (item,)):
            if "cluster" in term:
                yield cluster_path(term["clusterProvider"], term["cluster"])


def to_cluster(_path: str, document: Document) -> Iterator[str]:
    spec = document["spec"]
    yield cluster_path(spec["clusterProvider"], spec["cluster"])


def to_profile_and_cloud(path: str, document: Document) -> Iterator[str]:
    spec = document.get("spec", {})
    if "compositeProfile" in spec:
        yield f"{composite_of(path)}/composite-profiles/{spec['compositeProfile']}"
    if "logicalCloud" in spec:
        yield f"{project_of(path)}/logical-clouds/{spec['logicalCloud']}"


def to_controllers(_path: str, document: Document) -> Iterator[str]:
    for controller in document["spec"]["intent"]:
        if controller != GENERIC_INTENT:
            yield f"controllers/{controller}"


# -- the kinds -----------------------------------------------------------------------------------


def _kinds() -> Iterator[DocumentKind]:
    yield from _app_kinds()
    yield from _group_kinds()
    yield from _hpa_kinds()
    yield from _cloud_kinds()
    yield from _cluster_kinds()


def _app_kinds() -> Iterator[DocumentKind]:
    yield DocumentKind(
        name="project",
        collection="projects",
        placeholders=("project",),
        shape=apps.PROJECT,
        about="a project",
    )
    yield DocumentKind(
        name="composite-app",
        collection="composite-apps",
        placeholders=("compositeApp", "compositeAppVersion"),
        shape=apps.COMPOSITE_APP,
        about="a composite app, in one version",
        parent="project",
        names=name_and_version,
    )
    yield DocumentKind(
        name="app",
        collection="apps",
        placeholders=("app",),
        shape=apps.APP,
        about="an app with its manifests",
        parent="composite-app",
        file="file",
    )
    yield DocumentKind(
        name="composite-profile",
        collection="composite-profiles",
        placeholders=("compositeProfile",),
        shape=apps.COMPOSITE_PROFILE,
        about="a set of profiles",
        parent="composite-app",
    )
    yield DocumentKind(
        name="profile",
        collection="profiles",
        placeholders=("appProfile",),
        shape=apps.PROFILE,
        about="values that override those of an app",
        parent="composite-profile",
        file="file",
        references=to_app,
    )


def _group_kinds() -> Iterator[DocumentKind]:
    yield DocumentKind(
        name=GROUP,
        collection="deployment-intent-groups",
        placeholders=("deploymentIntentGroup",),
        shape=groups.GROUP,
        about="a deployment intent group",
        parent="composite-app",
        references=to_profile_and_cloud,
    )
    yield DocumentKind(
        name="group-intent",
        collection="intents",
        placeholders=("groupIntent",),
        shape=groups.INTENTS,
        about="which controllers a group calls, with which intent",
        parent=GROUP,
        query="intent",
        references=to_controllers,
    )
    yield DocumentKind(
        name="generic-placement-intent",
        collection="generic-placement-intents",
        placeholders=("genericPlacementIntent",),
        shape=groups.GENERIC_PLACEMENT,
        about="a generic placement intent",
        parent=GROUP,
    )
    yield DocumentKind(
        name="app-intent",
        collection="app-intents",
        placeholders=("genericAppPlacementIntent",),
        shape=groups.APP_INTENT,
        about="the clusters that an app may go to",
        parent="generic-placement-intent",
        references=to_app_and_clusters,
    )
    yield DocumentKind(
        name="affinity-intent",
        collection="affinity-intents",
        placeholders=("affinityIntent",),
        shape=groups.AFFINITY,
        about="which apps may, must not, or must share a cluster with an app",
        parent=GROUP,
        references=to_apps,
    )


def _hpa_kinds() -> Iterator[DocumentKind]:
    yield DocumentKind(
        name="hpa-intent",
        collection="hpa-intents",
        placeholders=("hpaIntent",),
        shape=hpa.INTENT,
        about="the hardware intent of an app",
        parent=GROUP,
        query="intent",
        references=to_app,
        is_settled_by_children=True,
    )
    yield DocumentKind(
        name="hpa-consumer",
        collection="hpa-resource-consumers",
        placeholders=("hpaConsumer",),
        shape=hpa.CONSUMER,
        about="a microservice that needs hardware",
        parent="hpa-intent",
        query="consumer",
        is_settled_by_children=True,
    )
    yield DocumentKind(
        name="hpa-requirement",
        collection="resource-requirements",
        placeholders=("hpaResource",),
        shape=hpa.REQUIREMENT,
        about="a resource that a microservice needs",
        parent="hpa-consumer",
        query="resource",
    )


def _cloud_kinds() -> Iterator[DocumentKind]:
    cloud = "logical-cloud"
    yield DocumentKind(
        name=cloud,
        collection="logical-clouds",
        placeholders=("logicalCloud",),
        shape=clouds.LOGICAL_CLOUD,
        about="a logical cloud",
        parent="project",
    )
    yield DocumentKind(
        name="cluster-reference",
        collection="cluster-references",
        placeholders=("clusterReference",),
        shape=clouds.CLUSTER_REFERENCE,
        about="a cluster of a logical cloud",
        parent=cloud,
        references=to_cluster,
    )
    for name, collection, placeholder, about in (
        ("cluster-quota", "cluster-quotas", "clusterQuota", "a quota of a logical cloud"),
        ("user-permission", "user-permissions", "userPermission", "what a user may do"),
        ("cloud-kv", "kv-pairs", "logicalCloudKv", "values of a logical cloud"),
    ):
        yield DocumentKind(
            name=name,
            collection=collection,
            placeholders=(placeholder,),
            shape=clouds.PLAIN,
            about=about,
            parent=cloud,
        )


def _cluster_kinds() -> Iterator[DocumentKind]:
    yield DocumentKind(
        name="cluster-provider",
        collection="cluster-providers",
        placeholders=("clusterProvider",),
        shape=clusters.PROVIDER,
        about="a provider of clusters",
    )
    yield DocumentKind(
        name="cluster",
        collection="clusters",
        placeholders=("cluster",),
        shape=clusters.CLUSTER,
        about="a cluster, known by a kubeconfig or by a snapshot",
        parent="cluster-provider",
        file="kubeconfig",
    )
    yield DocumentKind(
        name="cluster-label",
        collection="labels",
        placeholders=("clusterLabel",),
        shape=clusters.CLUSTER_LABEL,
        about="a label of a cluster",
        parent="cluster",
        names=label_name,
    )
    yield DocumentKind(
        name="cluster-kv",
        collection="kv-pairs",
        placeholders=("clusterKv",),
        shape=clusters.KEY_VALUES,
        about="values of a cluster",
        parent="cluster",
    )
    for collection in ("controllers", "clm-controllers", "dcm-controllers", "dtc-controllers"):
        yield DocumentKind(
            name=collection.removesuffix("s"),
            collection=collection,
            placeholders=("controller",),
            shape=clusters.CONTROLLER,
            about="a controller, and where it is",
        )


KINDS: Mapping[str, DocumentKind] = {each.name: each for each in _kinds()}
"""By name; parents before what is below them."""


def kind_below(collection: str) -> DocumentKind | None:
    """Of the documents that a collection's path has: `projects/p1/composite-apps`."""
    segments = collection.split("/")
    for kind in KINDS.values():
        wanted = kind.collection_template().strip("/").split("/")
        if len(wanted) == len(segments) and all(
            one.startswith("{") or one == each for one, each in zip(wanted, segments, strict=True)
        ):
            return kind
    return None
