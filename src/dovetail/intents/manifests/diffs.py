"""Diffs of manifests: before and after as unified YAML, for plans. Secrets are not shown."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from dovetail.intents.group import ManifestObject

ObjectKey = tuple[str, str, str, str]
"""API group, kind, namespace and name."""

SECRET_FIELDS = ("data", "stringData")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation in which kubectl keeps all of an object."""
HIDDEN = "(hidden)"
LINES_AROUND = 3


class _PlainDumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Without aliases: nobody reads those in a diff."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def key_of(manifest: ManifestObject) -> ObjectKey:
    meta = manifest.get("metadata") or {}
    group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
    name, namespace = meta.get("name") or "", meta.get("namespace") or ""
    return group, str(manifest.get("kind")), str(namespace), str(name)


def yaml_of(manifest: ManifestObject) -> str:
    """Keys in the order of the manifest; values of Secrets hidden."""
    text: str = yaml.dump(
        _without_secrets(manifest),
        Dumper=_PlainDumper,
        sort_keys=False,
        default_flow_style=False,
        allow_unicode=True,
        width=1000,
    )
    return text


def diff_of(before: Iterable[ManifestObject], after: Iterable[ManifestObject]) -> str:
    """Of all objects that differ, were added or are gone, one after the other."""
    old = {key_of(each): each for each in before}
    new = {key_of(each): each for each in after}
    keys = [*new, *(each for each in old if each not in new)]
    return "".join(line for key in keys for line in _lines(key, old.get(key), new.get(key)))


def _lines(key: ObjectKey, old: ManifestObject | None, new: ManifestObject | None) -> Iterator[str]:
    if old == new:
        return
    _, kind, namespace, name = key
    title = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
    before, after = ([] if each is None else _shown_lines(each) for each in (old, new))
    names = ["(none)" if each is None else title for each in (old, new)]
    if before == after:
        yield f"--- {title}\n+++ {title}\n(values that are hidden differ)\n"
    yield from difflib.unified_diff(before, after, names[0], names[1], n=LINES_AROUND)


def _shown_lines(manifest: ManifestObject) -> list[str]:
    return yaml_of(manifest).splitlines(keepends=True)


def _without_secrets(manifest: ManifestObject) -> dict[str, Any]:
    if manifest.get("kind") != "Secret":
        return dict(manifest)
    shown: dict[str, Any] = {
        field: dict.fromkeys(value, HIDDEN)
        if field in SECRET_FIELDS and isinstance(value, dict)
        else value
        for field, value in manifest.items()
    }
    annotations = (shown.get("metadata") or {}).get("annotations") or {}
    if LAST_APPLIED in annotations:
        hidden = {**annotations, LAST_APPLIED: HIDDEN}
        shown["metadata"] = {**shown["metadata"], "annotations": hidden}
    return shown
