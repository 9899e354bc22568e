"""`dovetail agent plugin` as a process, and `dovetail agent pools`."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dovetail.cli.agent import pools
from dovetail.node.topology import write
from dovetail.node.wire.resource_plugin import ALLOCATE
from dovetail.wire.rpc import call, connect
from tests.node.plugins.rig import directory, plugin, request, spec_machine
from tests.node.plugins.test_spec_examples import EXAMPLE_1
from tests.support.processes import Process

PLUGIN = "from dovetail.cli.agent.plugin import command; command()"


@pytest.fixture(scope="module")
def machine() -> Iterator[Path]:
    """A directory with a sysfs and what belongs to it."""
    with directory() as made:
        write(spec_machine(), made)
        yield made


@pytest.fixture
def place(machine: Path) -> Iterator[Path]:
    """A directory with a file of roles, on that machine."""
    with directory() as made:
        (made / "sys").symlink_to(machine / "sys")
        (made / "proc").symlink_to(machine / "proc")
        (made / "roles.toml").write_text(EXAMPLE_1)
        yield made


def arguments(place: Path) -> list[str]:
    return [
        "cpu",
        f"--roles={place / 'roles.toml'}",
        f"--socket-dir={place}",
        f"--state-dir={place / 'state'}",
        f"--sysfs={place / 'sys'}",
        "--period=0.05",
    ]


@pytest.fixture
def running(place: Path) -> Iterator[Process]:
    with Process([sys.executable, "-c", PLUGIN, *arguments(place)], place / "log") as process:
        process.await_ready((place / "cpu.sock").exists)
        yield process


def eventually(true: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not true():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def allocated(place: Path) -> str:
    async def ask() -> str:
        async with connect(str(place / "cpu.sock")) as channel:
            answer = await call(channel, ALLOCATE, request("pod", "cpu", 2, "ETL"), 10)
            assert answer.allocation_result
            return answer.allocation_result.resource_allocation["cpu"].allocation_result

    return asyncio.run(ask())


def resize(place: Path, *more: str) -> Result:
    options = [
        f"--roles={place / 'roles.toml'}",
        f"--state-dir={place / 'state'}",
        f"--sysfs={place / 'sys'}",
    ]
    return CliRunner().invoke(pools.command, [*options, *more])


def test_a_plugin_runs_and_its_pools_are_resized(place: Path, running: Process) -> None:
    assert allocated(place) == "38-39,78-79"

    planned = resize(place, "online=28", "offline=52", "--dry-run")
    assert planned.output.splitlines() == [
        "POOL     SIZE  CPUS",
        "online     28  0-13,40-53",
        "offline    52  14-39,54-79",
        "shared      0",
        "",
        "48 CPUs from online to offline: 14-37,54-77",
    ]
    assert allocated(place) == "38-39,78-79"

    done = resize(place, "online=28", "offline=52", "-o", "json")
    assert json.loads(done.output)["moves"] == [
        {"from": "online", "to": "offline", "cpus": "14-37,54-77"}
    ]
    eventually(lambda: allocated(place) == "14-39,54-79")

    # The old sizes do not go with the new file any more, so those of the file count.
    (place / "roles.toml").write_text(EXAMPLE_1.replace("size = 76", "size = 40"))
    running.send_signal(signal.SIGHUP)
    eventually(lambda: allocated(place) == "20-21,60-61")

    running.send_signal(signal.SIGTERM)
    assert running.wait(20) == 0
    assert not (place / "cpu.sock").exists()


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ("online", "'online' is not of the form POOL=SIZE, such as online=28"),
        ("online=x", "'online=x' is not of the form POOL=SIZE"),
        ("onlime=3", "there is no pool 'onlime'; there are online, offline"),
        ("online=0", "pool online: size is 0, below min, which is 1"),
        ("online=77", "the sizes add up to 81 CPUs; there are 80"),
    ],
)
def test_sizes_that_cannot_be(place: Path, wish: str, words: str) -> None:
    (place / "state").mkdir()
    plugin("cpu", spec_machine(), EXAMPLE_1, place / "state")
    refused = resize(place, wish)
    assert refused.exit_code == 2
    assert words in refused.output
    assert not (place / "state" / "pools.json").exists()


def test_a_plugin_that_cannot_start_says_why(place: Path) -> None:
    (place / "roles.toml").write_text("[pools.a]\nsize = 100\n")
    ended = subprocess.run(
        [sys.executable, "-c", PLUGIN, *arguments(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 6
    assert "roles.toml, line 1: pools: their sizes add up to 100 CPUs; 80 are left" in ended.stderr
    assert not (place / "cpu.sock").exists()
