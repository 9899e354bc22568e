"""`dovetail agent pools`: shows the CPU plugin's pools, and resizes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dovetail.cli.support.exits import LocalFailure
from dovetail.cli.support.output import count_text, output_option, show, table
from dovetail.core.errors import DovetailError

if TYPE_CHECKING:
    from dovetail.node.plugins.cpu.pools import Division

DIRECTORY = click.Path(exists=True, file_okay=False, path_type=Path)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command("pools")
@click.argument("sizes", nargs=-1, metavar="[POOL=SIZE]...")
@click.option("--roles", type=FILE, required=True, help="That of the CPU plugin.")
@click.option("--state-dir", type=DIRECTORY, required=True, help="That of the CPU plugin.")
@click.option("--resource", default="cpu", show_default=True, help="That of the CPU plugin.")
@click.option("--sysfs", type=DIRECTORY, default="/sys", show_default=True)
@click.option("--dry-run", is_flag=True, help="Only show what would move.")
@output_option
def command(
    *,
    sizes: tuple[str, ...],
    roles: Path,
    state_dir: Path,
    resource: str,
    sysfs: Path,
    dry_run: bool,
    form: str,
) -> None:
    """Show the pools; with sizes, have the plugin resize them.

    The plugin does so with as little movement as possible, at once or by and by if a pool has a
    ramp. What is shown is where that ends.
    """
    from dovetail.node import topology
    from dovetail.node.plugins.common import role_file
    from dovetail.node.plugins.common.store import decode_state
    from dovetail.node.plugins.cpu.sizes import faults
    from dovetail.node.plugins.cpu.state import Cpus, CpuState
    from dovetail.node.plugins.running import file_name
    from dovetail.node.plugins.watch import WISHES
    from dovetail.node.sdk.files import write_atomically

    wanted = parsed(sizes)
    try:
        machine = topology.read(sysfs)
        cpus = Cpus(machine, role_file.read(roles, machine))
        state = decode_state((state_dir / f"{file_name(resource)}.json").read_bytes(), CpuState)
        wrong = faults(cpus, {**state.wanted, **wanted})
        if wrong:
            raise click.UsageError("; ".join(wrong))
        after = cpus.settled(state, {**state.wanted, **wanted})
        cpus.nobody_without(after, state)
        if wanted and not dry_run:
            write_atomically(state_dir / WISHES, json.dumps(wanted).encode())
    except (DovetailError, OSError) as error:
        raise LocalFailure(str(error)) from error
    show(form, document(state.pools, after.pools), lambda: lines(state.pools, after.pools))


def parsed(sizes: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for each in sizes:
        name, equals, size = each.partition("=")
        if not equals or not size.isdecimal():
            raise click.UsageError(f"{each!r} is not of the form POOL=SIZE, such as online=28")
        found[name] = int(size)
    return found


def document(before: Division, after: Division) -> Mapping[str, Any]:
    from dovetail.node.plugins.cpu.pools import moves

    return {
        "pools": {
            name: {"size": len(cpus), "cpus": str(cpus), "before": str(before.get(name, ""))}
            for name, cpus in after.items()
        },
        "moves": [
            {"from": giver, "to": receiver, "cpus": str(cpus)}
            for giver, receiver, cpus in moves(before, after)
        ],
    }


def lines(before: Division, after: Division) -> Iterator[str]:
    from dovetail.node.plugins.cpu.pools import moves

    yield from table(
        ("POOL", "SIZE", "CPUS"), [(name, len(cpus), str(cpus)) for name, cpus in after.items()]
    )
    found = moves(before, after)
    if found:
        yield ""
    for giver, receiver, cpus in found:
        yield f"{count_text(len(cpus), 'CPU')} from {giver} to {receiver}: {cpus}"
