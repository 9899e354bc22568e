"""Reads NICs, and which addresses they have.

Sysfs has no addresses. IPv6 ones are in a file of proc; IPv4 ones are not, so the kernel is asked
for the first of each NIC, which only works for the machine that we run on.
"""

from __future__ import annotations

import fcntl
import socket
import struct
from collections.abc import Mapping, Sequence
from ipaddress import IPv6Address
from pathlib import Path

from dovetail.node.topology.machine import Nic
from dovetail.node.topology.sysfs import BadSysfs, children, number
from dovetail.node.topology.sysfs import text as content

SIOCGIFADDR = 0x8915
PROC = Path("/proc")


def read(root: Path, proc: Path, addresses: Mapping[str, Sequence[str]] | None) -> tuple[Nic, ...]:
    # What is no hardware has no device.
    found = [each for each in children(root / "class/net") if (each / "device").exists()]
    told = _told(proc, [each.name for each in found]) if addresses is None else addresses
    return tuple(
        Nic(
            name=each.name,
            numa=_known(number(each / "device/numa_node")),
            speed=_known(number(each / "speed")),
            mac=content(each / "address") or "",
            addresses=tuple(told.get(each.name, ())),
        )
        for each in found
    )


def _known(value: int | None) -> int | None:
    """The kernel says -1 for what it does not know."""
    return None if value is None or value < 0 else value


def _told(proc: Path, names: Sequence[str]) -> Mapping[str, Sequence[str]]:
    ours = proc == PROC
    v6 = _v6(proc / "net/if_inet6")
    return {name: [*v6.get(name, ()), *(_v4(name) if ours else ())] for name in names}


def _v6(file: Path) -> Mapping[str, Sequence[str]]:
    """Lines of address, index, prefix length, scope, flags and name."""
    found: dict[str, list[IPv6Address]] = {}
    for line in (content(file) or "").splitlines():
        try:
            address, *_, name = line.split()
            found.setdefault(name, []).append(IPv6Address(bytes.fromhex(address)))
        except ValueError:
            raise BadSysfs(f"{file} has {line[:80]!r}, which is no address of a NIC") from None
    # An address that needs to be told the NIC is of little use to a program that binds to it.
    return {
        name: [*map(str, sorted(addresses, key=lambda each: each.is_link_local))]
        for name, addresses in found.items()
    }


def _v4(name: str) -> Sequence[str]:
    asking = struct.pack("256s", name.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as kernel:
        try:
            answer = fcntl.ioctl(kernel, SIOCGIFADDR, asking)
        except OSError:
            # It has none.
            return ()
    return (socket.inet_ntoa(answer[20:24]),)
