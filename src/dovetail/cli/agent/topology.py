"""`dovetail agent topology`: draws the machine, read from sysfs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from dovetail.cli.support.exits import LocalFailure
from dovetail.cli.support.output import count_text, paint, printable, show
from dovetail.cli.support.tree_text import Node, tree_lines
from dovetail.node.common.cpus import CpuSet
from dovetail.node.topology import BadSysfs, Machine, Nic, NumaNode, read

SHOWN = 3
"""Cores that are written out, to show how threads are numbered."""


@click.command("topology")
@click.option(
    "--sysfs",
    "root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default="/sys",
    show_default=True,
    help="Another machine's, if it was copied.",
)
@click.option(
    "-o",
    "--output",
    "form",
    type=click.Choice(("tree", "json", "yaml")),
    default="tree",
    show_default=True,
    help="For people, or for programs.",
)
def command(root: Path, form: str) -> None:
    """Show the CPUs, NUMA nodes, caches and NICs of this machine.

    CPUs that are offline are left out: the kernel does not tell where they are.
    """
    try:
        machine = read(root)
    except BadSysfs as error:
        raise LocalFailure(str(error)) from error
    show(form, document(machine), lambda: lines(machine))


def document(machine: Machine) -> dict[str, Any]:
    """Sets of CPUs as the kernel writes them; cores and caches by the lowest of their CPUs."""
    return {
        "online": str(machine.online),
        "offline": str(machine.offline),
        "isolated": str(machine.isolated),
        "threads_per_core": machine.threads_per_core,
        "memory": machine.memory,
        "nodes": [
            {**msgspec.to_builtins(node, str_keys=True), "cpus": str(node.cpus)}
            for node in machine.nodes
        ],
        "nics": msgspec.to_builtins(machine.nics),
        "cpus": msgspec.to_builtins(machine.cpus),
    }


def lines(machine: Machine) -> Iterator[str]:
    drawn = list(tree_lines(drawing(machine)))
    width = max(len(item.label) for item in drawn)
    for item in drawn:
        gap = " " * (width - len(item.label) + 2)
        name = paint(printable(item.node["name"]), bold=True)
        yield f"{item.lead}{name}{gap}{printable(item.node['detail'])}".rstrip()


def drawing(machine: Machine) -> Node:
    lonely = [node for node in machine.nodes if not node.cpus]
    strays = [nic for nic in machine.nics if nic.numa not in machine.node_ids]
    return {
        "name": "machine",
        "detail": "  ".join(summary(machine)),
        "children": [
            *(socket(machine, each) for each in machine.by_socket),
            *(numa(machine, node, node.cpus) for node in lonely),
            *map(interface, strays),
        ],
    }


def summary(machine: Machine) -> Iterator[str]:
    yield count_text(len(machine.cpus), "CPU")
    yield count_text(len(machine.by_core), "core")
    yield count_text(len(machine.nodes), "NUMA node")
    yield size(machine.memory)
    if machine.offline:
        yield f"offline {machine.offline}"
    if machine.isolated:
        yield f"isolated {machine.isolated}"


def socket(machine: Machine, at: int) -> Node:
    cpus = machine.by_socket[at]
    nodes = [machine.node(each) for each in sorted(machine.nodes_of(cpus))]
    return {
        "name": f"socket {at}",
        "detail": f"CPUs {cpus}",
        "children": [numa(machine, node, node.cpus & cpus) for node in nodes],
    }


def numa(machine: Machine, node: NumaNode, cpus: CpuSet) -> Node:
    """The part of a node that is in a socket. What it has besides CPUs is told at the first."""
    caches = [
        (lowest, shared & cpus) for lowest, shared in machine.by_uncore.items() if shared & cpus
    ]
    first = not cpus or min(node.cpus) in cpus
    told = [f"CPUs {cpus}"] if cpus else []
    return {
        "name": f"NUMA node {node.id}",
        "detail": "  ".join([*told, *(belongings(node) if first else ())]),
        "children": [
            *(cache(machine, lowest, shared) for lowest, shared in caches),
            *(interface(nic) for nic in machine.nics if first and nic.numa == node.id),
        ],
    }


def belongings(node: NumaNode) -> Iterator[str]:
    yield size(node.memory) if node.memory else "no memory"
    for page, pages in node.hugepages.items():
        if pages.total:
            yield f"{pages.free}/{pages.total} pages of {size(page)} free"
    if len(node.distances) > 1:
        yield "distances " + " ".join(f"{to}:{far}" for to, far in node.distances.items())


def cache(machine: Machine, lowest: int, cpus: CpuSet) -> Node:
    cores = [str(machine.by_core[each] & cpus) for each in sorted(machine.cores_of(cpus))]
    more = [f"{len(cores) - SHOWN} more"] if len(cores) > SHOWN else []
    real = machine.cpu(lowest).l3 is not None
    kinds = sorted({machine.cpu(each).kind for each in cpus} - {""})
    return {
        "name": "L3 cache" if real else "cores",
        "detail": "  ".join(
            [f"CPUs {cpus}", f"cores {' | '.join([*cores[:SHOWN], *more])}", *kinds]
        ),
        "children": [],
    }


def interface(nic: Nic) -> Node:
    speed = "speed unknown" if nic.speed is None else f"{nic.speed:,} Mb/s"
    return {
        "name": nic.name,
        "detail": "  ".join(filter(None, [speed, nic.mac, " ".join(nic.addresses)])),
        "children": [],
    }


def size(amount: int) -> str:
    for unit, worth in (("GiB", 2**30), ("MiB", 2**20)):
        if amount >= worth:
            return f"{amount / worth:.4g} {unit}"
    return f"{amount >> 10} KiB"
