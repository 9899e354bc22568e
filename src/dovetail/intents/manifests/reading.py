"""Manifests read: YAML or JSON text to Kubernetes objects, within limits of size and depth.

`service/intents` calls it for what users upload and for what Helm prints. A document is first
looked through as a stream of events, which takes room for nothing: nesting, and what aliases come
to when they are expanded, are known before anything is built. Scalars are read as `kubectl` reads
them: no dates, no numbers to the base of sixty, keys are text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import msgspec
import yaml

from dovetail.intents.group import ManifestObject
from dovetail.intents.manifests.errors import BadManifest

MOST_BYTES = 8 * 2**20
MOST_VALUES = 500_000
"""Scalars, lists and mappings of one text, with aliases expanded."""
MOST_OBJECTS = 5_000
DEEPEST = 100
LONGEST_NAME = 253


class KubeLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML to JSON, as Kubernetes' own reader does it."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}


def _resolve(tag: str, form: str, first: str) -> None:
    KubeLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{form})\Z", re.ASCII), list(first)
    )


_resolve(
    "bool",
    "yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
    "yYnNtTfFoO",
)
_resolve(
    "int", r"[-+]?0b[01_]+|[-+]?0x[0-9a-fA-F_]+|[-+]?0[0-7_]*|[-+]?[1-9][0-9_]*", "-+0123456789"
)
_resolve(
    "float", r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"
)
_resolve("null", "~|null|Null|NULL|", "~nN\0")
KubeLoader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"\Z"), [""])
_resolve("merge", "<<", "<")


def objects_of(content: bytes | str, source: str) -> tuple[ManifestObject, ...]:
    """All objects of the text, those of lists one by one. Raises BadManifest, which names
    `source` (a file, an app) and the document."""
    text = _text(content, source)
    found: list[ManifestObject] = []
    for number, document in enumerate(_documents(text, source), 1):
        where = f"{source}, document {number}"
        for each in _unpacked(document, where):
            found.append(_checked(each, where))
            if len(found) > MOST_OBJECTS:
                raise BadManifest(source, "", f"more than {MOST_OBJECTS} objects")
    _refuse_twins(found, source)
    return tuple(found)


def documents_of(content: bytes | str, source: str) -> tuple[Any, ...]:
    """The documents themselves, whatever they are: values of a chart, a profile."""
    return tuple(_documents(_text(content, source), source))


def _text(content: bytes | str, source: str) -> str:
    if len(content) > MOST_BYTES:
        raise BadManifest(source, "", f"{len(content)} bytes: at most {MOST_BYTES} are read")
    try:
        return content if isinstance(content, str) else content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadManifest(source, "", f"byte {error.start} is no UTF-8") from error


def _documents(text: str, source: str) -> Iterator[Any]:
    """But for empty ones."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            document = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            pass  # It may be YAML that begins like JSON; else that reader tells what is wrong.
        else:
            yield _json_value(document, source, "")
            return
    try:
        _survey(text, source)
        for document in yaml.load_all(text, Loader=KubeLoader):
            if document is not None:
                yield _json_value(document, source, "")
    except yaml.YAMLError as error:
        raise BadManifest(source, "", " ".join(str(error).split())) from error
    except ValueError as error:
        # An integer of thousands of digits, or a number that is none.
        raise BadManifest(source, "", str(error)) from error


def _survey(text: str, source: str) -> None:
    """Counts values as they would be built. An alias stands for all that its anchor has; one
    within its own anchor would never end."""
    anchors: dict[str, int] = {}
    opened: list[tuple[str | None, int]] = []
    total = 0
    for event in yaml.parse(text, Loader=KubeLoader):
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in anchors:
                raise BadManifest(
                    source, _line(event), f"alias *{event.anchor} has no anchor before it"
                )
            total += anchors[event.anchor]
        elif isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, total))
            total += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            if anchor is not None:
                anchors[anchor] = total - before
        elif isinstance(event, yaml.ScalarEvent):
            total += 1
            if event.anchor is not None:
                anchors[event.anchor] = 1
        elif isinstance(event, yaml.DocumentStartEvent):
            anchors.clear()
        if total > MOST_VALUES:
            raise BadManifest(source, "", f"more than {MOST_VALUES} values, aliases expanded")
        if len(opened) > DEEPEST:
            raise BadManifest(source, _line(event), f"nested more than {DEEPEST} deep")


def _line(event: yaml.Event) -> str:
    return f"line {event.start_mark.line + 1}" if event.start_mark else ""


def _json_value(value: Any, source: str, path: str, depth: int = 0) -> Any:
    """A copy with text for keys, in which nothing is there twice by reference."""
    if depth > DEEPEST:
        raise BadManifest(source, path, f"nested more than {DEEPEST} deep")
    if isinstance(value, dict):
        return {
            (name := _key(key, source, path)): _json_value(
                each, source, f"{path}.{name}", depth + 1
            )
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [
            _json_value(each, source, f"{path}[{index}]", depth + 1)
            for index, each in enumerate(value)
        ]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise BadManifest(source, path.removeprefix("."), f"a {type(value).__name__} is no JSON")


def _key(key: object, source: str, path: str) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, int | float):
        return str(key)
    raise BadManifest(source, path.removeprefix("."), f"a key is text, not {key!r}")


def _unpacked(document: Any, where: str) -> Iterator[dict[str, Any]]:
    """A list (`kubectl get -o yaml`, kustomize) is its items, which may leave out what it says."""
    if not isinstance(document, dict):
        raise BadManifest(where, "", f"an object is expected, not a {type(document).__name__}")
    kind, entries = document.get("kind"), document.get("items")
    if not isinstance(kind, str) or not kind.endswith("List") or not isinstance(entries, list):
        yield document
        return
    version = document.get("apiVersion")
    own = {} if kind == "List" else {"apiVersion": version, "kind": kind.removesuffix("List")}
    for index, each in enumerate(entries):
        inner = f"{where}, items[{index}]"
        if not isinstance(each, dict):
            raise BadManifest(inner, "", f"an object is expected, not a {type(each).__name__}")
        yield from _unpacked({**own, **each}, inner)


def _checked(document: dict[str, Any], where: str) -> ManifestObject:
    for field in ("apiVersion", "kind"):
        _text_at(document, field, where, field)
    meta = document.get("metadata")
    if not isinstance(meta, dict):
        raise BadManifest(where, "metadata", "an object with a name is expected")
    if meta.get("generateName") and not meta.get("name"):
        message = "objects are applied by name: generateName is not enough"
        raise BadManifest(where, "metadata.name", message)
    name = _text_at(meta, "name", where, "metadata.name")
    if len(name) > LONGEST_NAME:
        raise BadManifest(where, "metadata.name", f"has more than {LONGEST_NAME} characters")
    if meta.get("namespace") is not None:
        _text_at(meta, "namespace", where, "metadata.namespace")
    for field in ("labels", "annotations"):
        if meta.get(field) is not None and not isinstance(meta[field], dict):
            raise BadManifest(where, f"metadata.{field}", "a mapping is expected")
    return document


def _text_at(parent: Mapping[str, Any], field: str, where: str, path: str) -> str:
    found = parent.get(field)
    if not isinstance(found, str) or not found:
        raise BadManifest(where, path, "is missing" if found is None else "text is expected")
    return found


def _refuse_twins(objects: list[ManifestObject], source: str) -> None:
    """The second would overwrite the first."""
    seen = set()
    for each in objects:
        meta = each["metadata"]
        group = each["apiVersion"].rpartition("/")[0]
        key = (group, each["kind"], meta.get("namespace") or "", meta["name"])
        if key in seen:
            raise BadManifest(source, "", f"{each['kind']} {meta['name']} is there twice")
        seen.add(key)
