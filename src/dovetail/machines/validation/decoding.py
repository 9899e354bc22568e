"""A Machine decoded from a document that somebody wrote, with what is wrong by its form.

`dovetail machines plan` reads files that the API server has not seen: what its schema would say of
types and unknown fields is said here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from dovetail.machines.documents import Machine
from dovetail.machines.validation.world import FieldFault

AT = re.compile(r"(?P<words>.*) - at `\$(?:\.(?P<path>.*))?`", re.DOTALL)


def decoded(document: Mapping[str, Any]) -> tuple[Machine | None, tuple[FieldFault, ...]]:
    """None if it cannot be read at all; unknown fields are faults, and passed over."""
    try:
        found = msgspec.convert(document, Machine)
    except msgspec.ValidationError as error:
        match = AT.fullmatch(str(error))
        words, path = (match["words"], match["path"] or "") if match else (str(error), "")
        return None, (FieldFault(path, words, path),)
    known = {"spec": msgspec.to_builtins(found.spec)}
    written = {"spec": document.get("spec") or {}}
    return found, tuple(_unknown(written, known, ""))


def _unknown(written: Any, known: Any, path: str) -> Iterator[FieldFault]:
    if isinstance(written, Mapping) and isinstance(known, Mapping):
        for key, value in written.items():
            place = f"{path}.{key}" if path else str(key)
            if key in known:
                yield from _unknown(value, known[key], place)
            else:
                there = ", ".join(map(str, known))
                yield FieldFault(place, f"there is no such field; there are {there}", place)
    elif isinstance(written, list) and isinstance(known, list | tuple):
        for at, (one, other) in enumerate(zip(written, known, strict=True)):
            yield from _unknown(one, other, f"{path}[{at}]")
