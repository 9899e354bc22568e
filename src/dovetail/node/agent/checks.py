"""Preflight checks: what has to be right before the daemon starts, in words that say what to do."""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dovetail.config.values import BadSettings
from dovetail.core.errors import DovetailError
from dovetail.node.agent.settings import GATE, AgentSettings, DevicePluginSettings, seconds
from dovetail.node.device_plugins.introductions import resource_objection
from dovetail.node.device_plugins.sharing import fits
from dovetail.node.wire.device_plugin import KUBELET_SOCKET

STATIC = {
    "cpu_manager_state": ("CPU", "--cpu-manager-policy=none"),
    "memory_manager_state": ("memory", "--memory-manager-policy=None"),
}
"""Files of the kubelet: the manager that writes it, and how it is switched off."""

LONGEST_SOCKET_BYTES = 103
"""Of a socket's path: 107 are possible, and it is made under a longer name first."""


class NotHere(DovetailError):
    """The machine is not in a state in which the agent may start."""


def check(settings: AgentSettings) -> None:
    """Settings that do not go together; raises BadSettings."""
    if not settings.feature_gates.get(GATE):
        raise BadSettings(
            f"the feature gate {GATE} is off, as it is by default: --feature-gates={GATE}=true "
            "switches it on"
        )
    unknown = sorted(settings.feature_gates.keys() - {GATE})
    if unknown:
        raise BadSettings(f"feature_gates: {', '.join(unknown)} is unknown; there is {GATE}")
    if not seconds(settings.reconcile_period):
        raise BadSettings("reconcile_period: it must be more than nothing, as 3s")
    if not settings.plugins.directories and settings.plugins.legacy_directory is None:
        raise BadSettings("plugins.directories: there must be one in which plugins are found")
    if settings.pods.source == "directory" and not settings.pods.directory:
        raise BadSettings("pods.source is directory: pods.directory must say which")
    if settings.pods.client_key and not settings.pods.client_certificate:
        raise BadSettings("pods.client_key: pods.client_certificate must say what it is the key of")
    if settings.pods.source == "none":
        for name, role in sorted(settings.roles.items()):
            if role.needs:
                raise BadSettings(
                    f"roles.{name}.needs: pods.source is none, so nobody tells what pods ask for"
                )
    if settings.device_plugins.enabled:
        check_device_plugins(settings.device_plugins)
    check_sockets(settings)
    metrics_address(settings.metrics_address)


def check_device_plugins(settings: DevicePluginSettings) -> None:
    directory, kubelet = Path(settings.directory), Path(settings.kubelet_directory)
    if not settings.directory or directory.absolute() == kubelet.absolute():
        raise BadSettings(
            "device_plugins.directory: it must be one of the agent's own; a kubelet that starts "
            "deletes every socket in its directory"
        )
    if len(os.fsencode(directory / KUBELET_SOCKET)) > LONGEST_SOCKET_BYTES:
        raise BadSettings("device_plugins.directory: it is too long for sockets in it")
    if settings.shared and not fits(kubelet):
        raise BadSettings("device_plugins.kubelet_directory: it is too long for sockets in it")
    for each in settings.shared:
        if wrong := resource_objection(each):
            raise BadSettings(f"device_plugins.shared: {wrong}")


def check_sockets(settings: AgentSettings) -> None:
    served = {
        "control_socket": settings.control_socket,
        "pod_resources_socket": settings.pod_resources_socket,
    }
    if settings.runtime.backend == "proxy":
        served["runtime.listen"] = settings.runtime.listen
        if settings.runtime.relay is not None:
            served["runtime.relay"] = settings.runtime.relay
        if Path(settings.runtime.listen).absolute() == Path(settings.runtime.socket).absolute():
            raise BadSettings("runtime.listen and runtime.socket are the same: it would ask itself")
    for key, path in served.items():
        if not path or len(os.fsencode(path)) > LONGEST_SOCKET_BYTES:
            size = len(os.fsencode(path))
            raise BadSettings(
                f"{key}: {path!r} has {size} bytes; 1 to {LONGEST_SOCKET_BYTES} are possible"
            )
    if len({Path(path).absolute() for path in served.values()}) < len(served):
        raise BadSettings(f"{', '.join(served)} must be different sockets")


def metrics_address(text: str) -> tuple[str, int] | None:
    """Host and port; nothing if there is to be none. Raises BadSettings."""
    if not text:
        return None
    host, _, port = text.rpartition(":")
    try:
        ipaddress.ip_address(host.strip("[]"))
        number = int(port)
    except ValueError:
        number = -1
    if not 0 <= number <= 65535:
        raise BadSettings(
            f"metrics_address: {text!r} is no address and port, as 127.0.0.1:9178 or [::1]:9178"
        )
    return host.strip("[]"), number


def check_machine(settings: AgentSettings) -> None:
    """Raises NotHere if the kubelet gives out CPUs or memory itself."""
    if settings.allow_static_managers:
        return
    for name, (what, remedy) in STATIC.items():
        file = Path(settings.kubelet_root) / name
        if policy_of(file) == "static":
            raise NotHere(
                f"{file} shows that the kubelet's {what} manager is static: two would pin the same "
                f"containers. Run the kubelet with {remedy} and remove that file; or, if no plugin "
                f"of yours gives out {what}, start with --allow-static-managers"
            )


def policy_of(file: Path) -> str:
    """In lower case; nothing if there is no such file, or it tells none."""
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return ""
    policy = found.get("policyName") if isinstance(found, dict) else None
    return policy.lower() if isinstance(policy, str) else ""


@contextmanager
def alone(state_dir: Path) -> Iterator[None]:
    """Make the directory and hold its lock; raises NotHere if another agent does."""
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        opened = os.open(state_dir / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise NotHere(f"state_dir {state_dir}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(opened, 32).decode(errors="replace").strip()
            raise NotHere(
                f"state_dir {state_dir}: another agent uses it (process {holder or 'unknown'})"
            ) from None
        os.ftruncate(opened, 0)
        os.write(opened, f"{os.getpid()}\n".encode())
        yield
    finally:
        os.close(opened)
