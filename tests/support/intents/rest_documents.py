"""The acceptance scenario as REST calls: every POST that makes it, in order, in both spellings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec
import yaml

from tests.support.intents.hardware import LABEL, PROVIDER

Json = dict[str, Any]

PROJECT, COMPOSITE_APP, VERSION, PROFILE = "my-proj1", "my-capp1", "v1.0", "my-profile1"
COMPOSITE_PATH = f"projects/{PROJECT}/composite-apps/{COMPOSITE_APP}/{VERSION}"
GENERIC = "my-generic"


class Spelling(StrEnum):
    CANONICAL = "canonical"
    """EMCO's at its head: flat consumers, `resource: {...}`, `app`."""
    SPEC = "spec"
    """The specification's: nested consumers, flat requirements, `appName`."""


class Post(msgspec.Struct, frozen=True, kw_only=True):
    """A call."""

    path: str
    """Without a slash before it, and without `v2/`."""
    body: Json | None = None
    file: str | None = None
    """Content of the file part, where EMCO takes one: then `body` is the metadata part."""


class RequirementText(msgspec.Struct, frozen=True, kw_only=True):
    """A requirement as a user has it in mind."""

    name: str
    resource: str
    requests: str | int | None = None
    limits: str | int | None = None
    units: str = ""
    mandatory: bool = True
    weight: int | None = None


class ConsumerText(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    kind: str
    container: str
    replicas: int | None = None
    requirements: tuple[RequirementText, ...]


def group_path(dig: str) -> str:
    return f"{COMPOSITE_PATH}/deployment-intent-groups/{dig}"


def provider_posts(snapshots: Mapping[str, Json]) -> Iterator[Post]:
    """The provider and its clusters, each with what it has as a posted snapshot."""
    yield Post(path="cluster-providers", body=_named(PROVIDER))
    for cluster, document in snapshots.items():
        path = f"cluster-providers/{PROVIDER}/clusters"
        yield Post(path=path, body={**_named(cluster), "spec": {"snapshot": document}})
        yield Post(path=f"{path}/{cluster}/labels", body={"clusterLabel": LABEL})


def composite_posts(objects: Mapping[str, Sequence[Json]]) -> Iterator[Post]:
    """Project, composite app, apps with their objects, and empty profiles."""
    yield Post(path="projects", body=_named(PROJECT))
    yield Post(
        path=f"projects/{PROJECT}/composite-apps",
        body={**_named(COMPOSITE_APP), "spec": {"compositeAppVersion": VERSION}},
    )
    for app, listed in objects.items():
        text = yaml.safe_dump_all(listed, sort_keys=False)
        yield Post(path=f"{COMPOSITE_PATH}/apps", body=_named(app), file=text)
    profiles = f"{COMPOSITE_PATH}/composite-profiles"
    yield Post(path=profiles, body=_named(PROFILE))
    for app in objects:
        body = {**_named(f"{app}-profile"), "spec": {"app": app}}
        yield Post(path=f"{profiles}/{PROFILE}/profiles", body=body)


def group_posts(dig: str) -> Iterator[Post]:
    yield Post(
        path=f"{COMPOSITE_PATH}/deployment-intent-groups",
        body={
            **_named(dig),
            "spec": {
                "compositeProfile": PROFILE,
                "version": "r1",
                "logicalCloud": "default",
                "overrideValues": [],
            },
        },
    )


def placement_posts(
    dig: str, clusters: Mapping[str, Sequence[str]], counts: Mapping[str, int]
) -> Iterator[Post]:
    """Generic placement: by app, any of these clusters; of no clusters, any with the label."""
    path = f"{group_path(dig)}/generic-placement-intents"
    yield Post(path=path, body=_named(GENERIC))
    intent = {"genericPlacementIntent": GENERIC}
    yield Post(
        path=f"{group_path(dig)}/intents",
        body={**_named("my-intents"), "spec": {"intent": intent}},
    )
    for app, named in clusters.items():
        any_of = [{"clusterProvider": PROVIDER, "cluster": each} for each in named]
        any_of = any_of or [{"clusterProvider": PROVIDER, "clusterLabel": LABEL}]
        spec: Json = {"app": app, "intent": {"anyOf": any_of}}
        if app in counts:
            spec["count"] = counts[app]
        body = {**_named(f"{app}-placement"), "spec": spec}
        yield Post(path=f"{path}/{GENERIC}/app-intents", body=body)


def hpa_posts(
    dig: str, app: str, consumers: Sequence[ConsumerText], spelling: Spelling
) -> Iterator[Post]:
    path = f"{group_path(dig)}/hpa-intents"
    intent = f"{app}-hpa-intent"
    key = "app" if spelling is Spelling.CANONICAL else "appName"
    meta = {**_named(intent)["metadata"], "userData1": "foo", "userData2": "bar"}
    yield Post(path=path, body={"metadata": meta, "spec": {key: app}})
    path = f"{path}/{intent}/hpa-resource-consumers"
    for consumer in consumers:
        body = {**_named(consumer.name), "spec": _consumer(consumer, spelling)}
        yield Post(path=path, body=body)
        for each in consumer.requirements:
            yield Post(
                path=f"{path}/{consumer.name}/resource-requirements",
                body={**_named(each.name), "spec": _requirement(each, spelling)},
            )


def affinity_posts(dig: str, rules: Mapping[str, Json]) -> Iterator[Post]:
    """By app, its lists of apps."""
    for app, lists in rules.items():
        yield Post(
            path=f"{group_path(dig)}/affinity-intents",
            body={**_named(f"{app}-affinity"), "spec": {"app": app, **lists}},
        )


def _consumer(one: ConsumerText, spelling: Spelling) -> Json:
    spec: Json = {"apiVersion": "apps/v1", "kind": one.kind, "name": one.name}
    if one.replicas is not None:
        spec["replicas"] = one.replicas
    if spelling is Spelling.CANONICAL:
        return {**spec, "container": one.container}
    return {"consumer": {**spec, "container-name": one.container}}


def _requirement(one: RequirementText, spelling: Spelling) -> Json:
    resource: Json = {"name": one.resource}
    for key, value in (("requests", one.requests), ("limits", one.limits), ("units", one.units)):
        if value:
            resource[key] = value
    spec: Json = {"allocatable": True, "mandatory": one.mandatory}
    if one.weight is not None:
        spec["weight"] = one.weight
    return (
        {**spec, "resource": resource} if spelling is Spelling.CANONICAL else {**spec, **resource}
    )


def _named(name: str) -> Json:
    return {"metadata": {"name": name, "description": f"{name} of the acceptance scenario"}}
