"""A plugin's state in a file: checksummed, replaced atomically. What is not written is not so."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import structlog

from dovetail.core.errors import DovetailError
from dovetail.node.common.cpus import BadCpuList, CpuSet
from dovetail.node.sdk.files import write_atomically

S = TypeVar("S", bound=msgspec.Struct)

VERSION = 1

LOG = structlog.get_logger("dovetail.node.plugins")


class StateNotSaved(DovetailError):
    """A state that could not be written: what it says must not be promised to anybody."""


class CorruptState(DovetailError):
    """A file that holds no state."""


class PluginStore:
    def __init__(self, path: Path) -> None:
        self.path = path

    def save(self, state: msgspec.Struct) -> None:
        try:
            write_atomically(self.path, encode_state(state))
        except OSError as error:
            raise StateNotSaved(
                f"the state could not be written to {self.path}: {error}"
            ) from error

    def load(self, kind: type[S]) -> S | None:
        """The state kept last; nothing if there is none. A file that is corrupt is set aside."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            return decode_state(data, kind)
        except CorruptState as error:
            self.set_aside(str(error))
            return None

    def set_aside(self, why: str) -> None:
        names = (self.path.with_name(f"{self.path.name}.corrupt-{at}") for at in count(1))
        aside = next(each for each in names if not each.exists())
        self.path.rename(aside)
        LOG.error("state set aside, starting without", file=str(aside), reason=why)


def encode_state(state: msgspec.Struct) -> bytes:
    """Deterministic, and readable for people."""
    data = plain(state)
    document = {"version": VERSION, "checksum": checksum(data), "data": data}
    return msgspec.json.format(msgspec.json.encode(document, order="sorted"), indent=1) + b"\n"


def decode_state(data: bytes, kind: type[S]) -> S:
    try:
        document = msgspec.json.decode(data)
        version, found = document["version"], document["data"]
        if version != VERSION:
            raise CorruptState(f"it has version {version}; this is for version {VERSION}")
        if document["checksum"] != checksum(found):
            raise CorruptState("its checksum does not match")
        return msgspec.convert(found, kind, dec_hook=_read, str_keys=True)
    except (
        msgspec.MsgspecError,
        ValueError,
        KeyError,
        TypeError,
        RecursionError,
        BadCpuList,
    ) as error:
        raise CorruptState(f"it is no state: {error!r}") from None


def checksum(data: Any) -> str:
    text = msgspec.json.encode(data, order="sorted")
    return f"sha256:{hashlib.sha256(text).hexdigest()}"


def plain(value: Any) -> Any:
    """In terms of JSON: sets of CPUs as the kernel writes them."""
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, CpuSet | Fraction):
        return str(value)
    return [plain(each) for each in value] if isinstance(value, tuple) else value


def _read(kind: type, value: Any) -> Any:
    return CpuSet.parse(value) if kind is CpuSet else kind(value)
