"""Resource classes as the ledger defines them, and the documents that do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from dovetail.devices.classes.documents import DeviceClass, read, write


def as_document(definition: DeviceClass) -> str:
    """The one way to write a definition, so that equal ones are equal texts."""
    return msgspec.json.encode(write(definition), order="sorted").decode()


def of_document(name: str, document: str) -> DeviceClass:
    return read(name, msgspec.json.decode(document, type=dict[str, object]))


class Definitions(Mapping[str, DeviceClass]):
    """By name; each is read when it is first asked for."""

    def __init__(self, documents: Mapping[str, str] | None = None) -> None:
        self._documents = documents or {}
        self._read: dict[str, DeviceClass] = {}

    def __getitem__(self, name: str) -> DeviceClass:
        found = self._read.get(name)
        if found is None:
            found = self._read[name] = of_document(name, self._documents[name])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._documents)

    def __len__(self) -> int:
        return len(self._documents)
