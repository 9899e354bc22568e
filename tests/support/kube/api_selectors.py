"""Selectors of the in-memory API: labels and fields as lists and watches are asked for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Raw = dict[str, Any]
Matcher = Callable[[Raw], bool]

IN = re.compile(r"^(?P<key>\S+)\s+(?P<not>not)?in\s*\((?P<values>[^)]*)\)$")
COMPARED = re.compile(r"^(?P<key>[^=!\s]+)\s*(?P<operator>==|!=|=)\s*(?P<value>.*)$")
COMMA = re.compile(r",(?![^(]*\))")


def matcher(namespace: str, labels: str, fields: str) -> Matcher:
    """Whether an object is in `namespace` and has the labels and the fields asked for."""
    wanted_labels = [requirement(part) for part in COMMA.split(labels) if part]
    wanted_fields = [requirement(part) for part in fields.split(",") if part]

    def matches(raw: Raw) -> bool:
        meta = raw["metadata"]
        if namespace and meta.get("namespace") != namespace:
            return False
        has = meta.get("labels") or {}
        return all(each(has) for each in wanted_labels) and all(
            each(Fields(raw)) for each in wanted_fields
        )

    return matches


def requirement(text: str) -> Callable[[Mapping[str, str]], bool]:
    text = text.strip()
    if found := IN.match(text):
        key, values = found["key"], {each.strip() for each in found["values"].split(",")}
        negated = bool(found["not"])
        return lambda has: (has.get(key) in values) != negated
    if found := COMPARED.match(text):
        key, value = found["key"], found["value"]
        negated = found["operator"] == "!="
        return lambda has: (has.get(key) == value) != negated
    if text.startswith("!"):
        return lambda has: text[1:] not in has
    return lambda has: text in has


class Fields(dict[str, str]):
    """An object's fields by their dotted paths; one that is not there is empty."""

    def __init__(self, raw: Raw) -> None:
        super().__init__()
        self._raw = raw

    def get(self, key: str, default: Any = None) -> Any:
        value: Any = self._raw
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return "" if value is None else value
