"""What is wrong with a manifest, or with what an intent wants of it; `service/intents` tells it."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.core.errors import Malformed


class BadManifest(Malformed):
    """Text that is no manifest, or an object that no API server would take."""

    def __init__(self, where: str, path: str, message: str) -> None:
        self.where, self.path, self.message = where, path, message
        super().__init__(": ".join(filter(None, (where, path, message))))


class UnknownWorkload(Malformed):
    """A consumer names an object that the app does not have, or not only one."""


class UnknownContainer(Malformed):
    """A consumer names a container that its object does not have."""

    def __init__(self, where: str, container: str, names: Iterable[str]) -> None:
        wanted = f"no container {container!r}" if container else "which container is not said"
        super().__init__(f"{where}: {wanted}: there are {', '.join(names) or 'none'}")


class Uneditable(Malformed):
    """What was granted cannot be said in a manifest."""
