"""Settings of a bed: what a test says goes over what all have, section by section."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping in both is merged itself; None in `over` takes a setting away."""
    found = dict(base)
    for name, value in over.items():
        before = found.get(name)
        if value is None:
            found.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            found[name] = merged(before, value)
        else:
            found[name] = value
    return found


def toml(settings: Mapping[str, Any]) -> str:
    """Sections are inline tables: nobody reads it but the agent."""
    return "".join(f"{_key(name)} = {_value(value)}\n" for name, value in settings.items())


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items())
        return f"{{ {inner} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value)


def _key(name: str) -> str:
    return json.dumps(name)
