"""Validation of registrations: is that a device plugin which can be used, and where does it serve?

The rules are the kubelet's, and one more: the socket is in the directory, whatever name was given.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import NamedTuple

from dovetail.node.wire.device_plugin import KUBELET_SOCKET, VERSION, RegisterRequest

LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
RESOURCE = re.compile(
    rf"(?P<domain>{LABEL}(\.{LABEL})*)/(?P<name>[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)", re.ASCII
)
QUOTA_PREFIX = "requests."
LONGEST_DOMAIN, LONGEST_NAME = 253 - len(QUOTA_PREFIX), 63
LONGEST_SOCKET_BYTES = 107
"""Of the path of a unix socket."""


class DeviceSocket(NamedTuple):
    """Tells a socket from another one that was made at the same path."""

    changed: int
    inode: int


def objection(request: RegisterRequest, directory: Path) -> str | None:
    """Why the plugin cannot be used, in words."""
    if request.version != VERSION:
        return f"it speaks version {request.version[:40]!r}; {VERSION} is needed"
    return resource_objection(request.resource_name) or endpoint_objection(
        request.endpoint, directory
    )


def resource_objection(resource: str) -> str | None:
    """Only what Kubernetes calls an extended resource can be handed out by a device plugin."""
    found = RESOURCE.fullmatch(resource)
    if not found or len(found["domain"]) > LONGEST_DOMAIN or len(found["name"]) > LONGEST_NAME:
        return f"{resource[:400]!r} is no name of an extended resource, such as vendor.com/gpu"
    if "kubernetes.io/" in resource or resource.startswith(QUOTA_PREFIX):
        return f"{resource!r} is a name that Kubernetes keeps to itself"
    return None


def endpoint_objection(endpoint: str, directory: Path) -> str | None:
    if (
        not endpoint
        or {"/", "\0"} & {*endpoint}
        or endpoint in (".", "..")
        or endpoint.startswith(KUBELET_SOCKET)
    ):
        return f"{endpoint[:200]!r} is no name of a socket beside {KUBELET_SOCKET}"
    size = len(os.fsencode(directory / endpoint))
    if size > LONGEST_SOCKET_BYTES:
        return (
            f"the path of its socket {str(directory / endpoint)[:400]!r} has {size} bytes on the "
            f"node; {LONGEST_SOCKET_BYTES} are possible"
        )
    return None


def device_socket_at(path: Path) -> DeviceSocket | None:
    """Nothing if there is none. A link is none: a plugin shows us its own socket, not another's."""
    try:
        found = path.lstat()
    except OSError:
        return None
    if not stat.S_ISSOCK(found.st_mode):
        return None
    return DeviceSocket(found.st_ctime_ns, found.st_ino)
