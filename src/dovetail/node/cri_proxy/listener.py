"""The socket that clients of the proxy come to: made closed to others, removed at the end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

from dovetail.node.wire.listening import CannotServe, answers


class Listener:
    def __init__(self, path: Path, accept: Callable[[], asyncio.Protocol]) -> None:
        self._path, self._accept = path, accept

    async def start(self) -> None:
        """Raises CannotServe."""
        if await asyncio.to_thread(answers, self._path):
            raise CannotServe(f"{self._path}: another process serves there; stop it first")
        # Under another name first: whoever was there before is replaced at once.
        draft = self._path.with_name(f"{self._path.name}.new")
        door = socket.socket(socket.AF_UNIX)
        try:
            self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            draft.unlink(missing_ok=True)
            door.bind(str(draft))
            draft.chmod(0o600)
            loop = asyncio.get_running_loop()
            self._server = await loop.create_unix_server(self._accept, sock=door)
            draft.rename(self._path)
        except OSError as error:
            door.close()
            raise CannotServe(f"{self._path}: no socket can be made there: {error}") from None
        self._inode = self._path.stat().st_ino

    def stop(self) -> None:
        # First the name, so that nobody comes who would be turned away; unless it is another's.
        if self._path.exists() and self._path.stat().st_ino == self._inode:
            self._path.unlink()
        self._server.close()
