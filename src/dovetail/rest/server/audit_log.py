"""Audit log, kept by the application: a line for every write, done or refused, in its own file.

Lines say who asked, from where, for what and how it ended. They hold neither tokens nor bodies nor
query strings.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import orjson
import structlog

from dovetail.core.errors import DovetailError
from dovetail.rest.auth.identity import Identity

log = structlog.get_logger("dovetail.rest.audit")

LONGEST_TEXT = 1000
READABLE_BY_GROUP = 0o640


class BadAuditLog(DovetailError):
    """An audit log that cannot be written."""


class AuditedWrite(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to change something."""

    identity: Identity
    client: str | None
    method: str
    path: str
    action: str | None
    objects: Mapping[str, str]
    status: int
    request_id: str
    global_request_id: str | None

    def line(self, now: datetime) -> bytes:
        document = {
            "time": now.isoformat(timespec="milliseconds"),
            "outcome": outcome(self.status),
            "status": self.status,
            "user": self.identity.user or None,
            "project": self.identity.project,
            "roles": sorted(self.identity.roles),
            "client": self.client,
            "method": self.method,
            "path": self.path[:LONGEST_TEXT],
            "action": self.action,
            "objects": {kind: name[:LONGEST_TEXT] for kind, name in self.objects.items()},
            "request_id": self.request_id,
            "global_request_id": self.global_request_id,
        }
        return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


def outcome(status: int) -> str:
    if status < 400:
        return "done"
    return "refused" if status < 500 else "failed"


class AuditLog:
    """Appends to a file that several processes may share: each line is one write to its end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._opened()

    def record(self, write: AuditedWrite) -> None:
        line = write.line(datetime.now(UTC))
        try:
            written = os.write(self._file, line)
            if written < len(line):
                raise OSError(f"only {written} of {len(line)} bytes were written")
        except OSError as error:
            # The answer is already settled; what the file cannot take is at least in the log.
            log.error("audit log not written", error=str(error), line=line.decode())

    def reopen(self) -> None:
        """After the file was moved away: go on in a new one under the old name."""
        try:
            fresh = self._opened()
        except BadAuditLog as error:
            log.error("audit log not reopened", error=str(error))
            return
        os.close(self._file)
        self._file = fresh

    def close(self) -> None:
        os.close(self._file)

    def _opened(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(self._path, flags, READABLE_BY_GROUP)
        except OSError as error:
            raise BadAuditLog(f"audit log {self._path}: {error.strerror}") from error
