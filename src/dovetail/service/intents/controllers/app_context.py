"""AppContext: apps, their clusters and objects in EMCO's layout, which its controllers act on.

`emco` and `emco_actions` write one, have controllers work on it, and read what is left of it.

    /context/ID/                                            the id
    /context/ID/meta/                                       which group it is
    /context/ID/app/instruction/{order,dependency}/         of the apps
    /context/ID/app/APP/                                    its name
    /context/ID/app/APP/cluster/P+C/                        its name
    /context/ID/app/APP/cluster/P+C/!@#metaGrp/             clusters of one number are alternatives
    /context/ID/app/APP/cluster/P+C/resource/NAME+KIND/     an object, as the text of its YAML
    /context/ID/app/APP/cluster/P+C/resource/instruction/{order,dependency}/

All values are JSON; instructions are JSON in a JSON string.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import yaml

from dovetail.intents.group import DeploymentGroup, ManifestObject
from dovetail.intents.manifests.reading import objects_of
from dovetail.intents.names import ClusterName
from dovetail.service.intents.controllers.translation import BadAnswer, shown_name

GROUP_NUMBER = "!@#metaGrp"
INSTRUCTION = "instruction"
DEFINITION = "CustomResourceDefinition"
GROUP_PATH = re.compile(
    r"projects/([^/]+)/composite-apps/([^/]+)/([^/]+)/deployment-intent-groups/([^/]+)"
)

Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class ContextCluster(msgspec.Struct, frozen=True):
    """A cluster of an app in the context."""

    group_number: int
    objects: Sequence[ManifestObject]


ContextApps = Mapping[str, Mapping[ClusterName, ContextCluster]]
"""By app, in their order, and cluster."""


class AppContext:
    """The layout of one context."""

    def __init__(self, identifier: str = "") -> None:
        """A new one, unless it is told which."""
        self.identifier = identifier or str(secrets.randbelow(2**63 - 1))
        self.root = f"/context/{self.identifier}/"
        self.apps = f"{self.root}app/"

    def entries(self, group: DeploymentGroup, apps: ContextApps) -> Iterator[tuple[str, bytes]]:
        yield self.root, _json(self.identifier)
        yield f"{self.root}meta/", _json(_meta(group))
        texts = _Texts()
        for app, clusters in apps.items():
            yield f"{self.apps}{app}/", _json(app)
            for cluster, there in clusters.items():
                at = self._cluster(app, cluster)
                yield at, _json(cluster)
                yield f"{at}{GROUP_NUMBER}/", _json(str(there.group_number))
                yield from _resources(f"{at}resource/", there.objects, texts)
        instructions = f"{self.apps}{INSTRUCTION}/"
        yield f"{instructions}order/", _instruction({"apporder": list(apps)})
        yield f"{instructions}dependency/", _instruction(dict.fromkeys(apps, "go"))

    def clusters(self, keys: Iterable[str], apps: Iterable[str]) -> dict[str, list[ClusterName]]:
        """By app, what is left in the context. Raises BadAnswer for an app that is not known."""
        found: dict[str, list[ClusterName]] = {app: [] for app in apps}
        for key in keys:
            app, *below = key.removeprefix(self.apps).split("/")
            if app == INSTRUCTION or not key.startswith(self.apps):
                continue
            if app not in found:
                raise BadAnswer(f"has app {shown_name(app)}, which is not in the group")
            match below:
                case ["cluster", cluster, ""]:
                    found[app].append(cluster)
        return found

    def objects(
        self, values: Mapping[str, bytes], app: str, cluster: ClusterName
    ) -> dict[str, ManifestObject]:
        """By `NAME+KIND`, as they are now. Raises BadAnswer, and Malformed for bad objects."""
        prefix = f"{self._cluster(app, cluster)}resource/"
        found = {}
        for key, value in values.items():
            name, slash, below = key.removeprefix(prefix).partition("/")
            if not key.startswith(prefix) or below or not slash:
                continue
            where = f"{app} on {cluster}: {name}"
            made = objects_of(_text_in(value, where), where)
            if len(made) != 1:
                raise BadAnswer(f"has {len(made)} objects at {where}, where one is")
            found[name] = made[0]
        return found

    def _cluster(self, app: str, cluster: ClusterName) -> str:
        return f"{self.apps}{app}/cluster/{cluster}/"


class _Texts:
    """Objects as YAML: most are the same on all clusters of an app."""

    def __init__(self) -> None:
        self._texts: dict[int, bytes] = {}
        self._kept: list[ManifestObject] = []
        """So that no other object gets the same id."""

    def __getitem__(self, manifest: ManifestObject) -> bytes:
        found = self._texts.get(id(manifest))
        if found is None:
            text = yaml.dump(dict(manifest), Dumper=Dumper, sort_keys=False, allow_unicode=True)
            found = self._texts[id(manifest)] = _json(text)
            self._kept.append(manifest)
        return found


def resource_name(manifest: ManifestObject) -> str:
    name = (manifest.get("metadata") or {}).get("name", "")
    return f"{name}+{manifest.get('kind', '')}"


def by_resource_name(objects: Iterable[ManifestObject]) -> dict[str, ManifestObject]:
    """The layout has one of a name and kind; of those in several namespaces, the first."""
    found: dict[str, ManifestObject] = {}
    for each in objects:
        found.setdefault(resource_name(each), each)
    return found


def _resources(
    prefix: str, objects: Sequence[ManifestObject], texts: _Texts
) -> Iterator[tuple[str, bytes]]:
    named = by_resource_name(objects)
    for name, each in named.items():
        yield f"{prefix}{name}/", texts[each]
    definitions = [name for name, each in named.items() if each.get("kind") == DEFINITION]
    order = [name for name in named if name not in definitions]
    yield f"{prefix}{INSTRUCTION}/order/", _instruction({"resorder": order})
    if definitions:
        dependency = {"resdependency": {"crd-install": definitions}}
        yield f"{prefix}{INSTRUCTION}/dependency/", _instruction(dependency)


def _meta(group: DeploymentGroup) -> dict[str, Any]:
    path = GROUP_PATH.fullmatch(group.name)
    project, composite_app, version, name = path.groups() if path else ("", "", "", group.name)
    return {
        "Project": project,
        "CompositeApp": composite_app,
        "Version": version,
        "Release": group.release,
        "DeploymentIntentGroup": name,
        "Namespace": group.namespace,
        # Of the logical cloud: 0 is the one of administrators, in the default namespace.
        "Level": "0" if group.namespace == "default" else "1",
        "ChildContextIDs": None,
        "LogicalCloud": group.logical_cloud,
        "LogicalCloudNamespace": "",
    }


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)


def _instruction(value: Any) -> bytes:
    return _json(_json(value).decode())


def _text_in(value: bytes, where: str) -> str:
    try:
        return msgspec.json.decode(value, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadAnswer(f"has at {where} what is no text") from None
