"""What the machine is made of: read from sysfs, or made up."""

from __future__ import annotations

from dovetail.node.topology.machine import Cpu, Hugepages, Machine, Nic, NotThere, NumaNode
from dovetail.node.topology.reader import read
from dovetail.node.topology.synthetic import synthetic
from dovetail.node.topology.sysfs import BadSysfs
from dovetail.node.topology.writer import write

__all__ = [
    "BadSysfs",
    "Cpu",
    "Hugepages",
    "Machine",
    "Nic",
    "NotThere",
    "NumaNode",
    "read",
    "synthetic",
    "write",
]
