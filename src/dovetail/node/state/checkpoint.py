"""The checkpoint file: versioned, checksummed, deterministic, the previous one kept beside it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec

from dovetail.core.errors import DovetailError
from dovetail.node.sdk.files import write_atomically
from dovetail.node.state.pod_state import AgentState, recovered_state

NAME = "qos_resource_manager_state"
VERSION = 1


class BadCheckpoint(DovetailError):
    """A file that is no state of ours, or no longer."""


class CheckpointEnvelope(msgspec.Struct, frozen=True, kw_only=True):
    version: int
    checksum: str = ""
    data: msgspec.Raw = msgspec.Raw()


class LoadedCheckpoint(NamedTuple):
    state: AgentState
    troubles: tuple[str, ...]
    """What a person should know: files that were set aside, and what was used instead."""


class Checkpoint:
    """The file in the state directory."""

    def __init__(
        self, directory: Path, write: Callable[[Path, bytes], None] = write_atomically
    ) -> None:
        self.path, self._write = directory / NAME, write
        self.last = directory / f"{NAME}.last"

    def save(self, state: AgentState) -> None:
        """Durable on return; raises OSError, and then what was saved before stands."""
        data = encode_state(state)
        self._keep_previous()
        self._write(self.path, data)

    def load(self) -> LoadedCheckpoint:
        """Never fails: what cannot be read is set aside and reported."""
        troubles: list[str] = []
        missing = False
        for path in (self.path, self.last):
            try:
                state = decode_state(path.read_bytes())
            except FileNotFoundError:
                missing = path == self.path
                continue
            except (OSError, BadCheckpoint) as error:
                troubles.append(f"{path} cannot be used: {error}; {self._set_aside(path)}")
                continue
            if path == self.last:
                gone = f"{self.path} is gone: " if missing else ""
                troubles.append(
                    f"{gone}the state before that was taken from {path}. To begin with nothing, "
                    "stop the agent and remove both files"
                )
            return LoadedCheckpoint(
                recovered_state(state, exact=path == self.path), tuple(troubles)
            )
        return LoadedCheckpoint(AgentState(), tuple(troubles))

    def _keep_previous(self) -> None:
        draft = self.last.with_name(f".{self.last.name}.new")
        draft.unlink(missing_ok=True)
        try:
            os.link(self.path, draft)
        except FileNotFoundError:
            return
        draft.replace(self.last)

    def _set_aside(self, path: Path) -> str:
        for number in count(1):
            aside = self.path.with_name(f"{NAME}.corrupt-{number}")
            if not aside.exists():
                break
        try:
            path.rename(aside)
        except OSError as error:
            return f"it cannot be set aside either: {error}"
        return f"it is now {aside.name}"


def encode_state(state: AgentState) -> bytes:
    """Equal states have equal bytes. Numbers are text, so any quantity survives."""
    data = msgspec.json.encode(msgspec.to_builtins(state, str_keys=True), order="deterministic")
    envelope = CheckpointEnvelope(version=VERSION, checksum=checksum(data), data=msgspec.Raw(data))
    return msgspec.json.encode(envelope) + b"\n"


def decode_state(data: bytes) -> AgentState:
    try:
        envelope = msgspec.json.decode(data, type=CheckpointEnvelope)
        if envelope.version != VERSION:
            raise BadCheckpoint(f"it has version {envelope.version}, not {VERSION}")
        if envelope.checksum != checksum(bytes(envelope.data)):
            raise BadCheckpoint("its checksum does not match its data")
        return msgspec.json.decode(envelope.data, type=AgentState)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadCheckpoint(f"it is not as it was written: {error}") from None


def checksum(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
