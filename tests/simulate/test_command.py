"""`dovetail simulate` as users run it."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dovetail.cli.main import main
from dovetail.simulate import plot as plots
from tests.simulate import files
from tests.support.processes import Process


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    hosts = [files.host("a", 2, vcpus=12), files.host("b", 2)]
    jobs = [files.job(f"t{at}", at, vcpus=at, arrives=at, ends=at + 3) for at in range(1, 8)]
    return [
        str(files.json_lines(tmp_path / "fleet.jsonl", hosts)),
        str(files.json_lines(tmp_path / "jobs.jsonl", jobs)),
    ]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["simulate", *arguments])


def figures(*arguments: str) -> Any:
    """What was printed as JSON, without the times."""
    result = run(*arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    for each in document["results"]:
        assert each.pop("decision_us").keys() == {"p50", "mean", "p99"}
    return document


def test_the_same_seeds_give_the_same_on_one_core_and_on_several(paths: list[str]) -> None:
    arguments = [*paths, "--policy", "pack", "--policy", "scarcity", "--seeds", "1-3,7"]
    alone = figures(*arguments, "-j", "1")
    assert alone == figures(*arguments, "-j", "2")
    assert [each["policy"] for each in alone["results"]] == ["pack", "scarcity"]
    assert alone["results"][0]["seeds"] == [1, 2, 3, 7]
    runs = [each["allocated"] for each in alone["results"][0]["runs"]]
    assert alone["results"][0]["mean"]["allocated"] == pytest.approx(sum(runs) / 4, abs=1e-4)


def test_a_table_has_a_line_for_each_workload_and_policy(paths: list[str]) -> None:
    result = run(*paths, "--policy", "first-fit", "--policy", "best-fit:2,pack", "--seeds", "1")
    header, *rows = result.stdout.splitlines()
    assert header.split()[:3] == ["workload", "policy", "allocated"]
    assert [row.split()[:2] for row in rows] == [["jobs", "first-fit"], ["jobs", "best-fit:2,pack"]]


def test_departures_follow_the_times_of_the_tasks(paths: list[str]) -> None:
    options = ["--policy", "pack", "--seeds", "1", "--protocol", "departures", "--load", "60"]
    document = figures(*paths, *options)
    assert (document["protocol"], document["load"]) == ("departures", 60)
    assert document["results"][0]["mean"]["peak"] > 0


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_plot_is_the_same_for_the_same_seeds(
    paths: list[str], tmp_path: Path, suffix: str
) -> None:
    drawn = [tmp_path / f"{name}.{suffix}" for name in ("one", "two")]
    for plot in drawn:
        result = run(*paths, "--policy", "pack", "--seeds", "1", "--plot", str(plot))
        assert result.exit_code == 0, result.output
    start = {"png": b"\x89PNG", "svg": b"<?xml"}[suffix]
    assert drawn[0].read_bytes().startswith(start)
    assert drawn[0].read_bytes() == drawn[1].read_bytes()


def test_plots_say_what_to_install(
    paths: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run(*paths, "--plot", str(tmp_path / "plot.png"))
    assert result.exit_code == 2
    assert "plots need matplotlib: install dovetail[plot]" in result.output


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--policy", "luck"], "No such policy: 'luck'"),
        (["--seeds", "a"], "seeds are whole numbers and ranges"),
        (["--seeds", "5-1"], "from the lower to the higher"),
        (["--plot", "plot.pdf"], "plots are written as .png or .svg"),
        (["--plot", "missing/plot.png"], "no such directory missing"),
        (["--plot", "p.png", "--protocol", "departures"], "plots go over demand"),
        (["--protocol", "numa"], "the protocol numa splits openb nodes"),
        (["--demand", "0"], "Invalid value for '--demand'"),
        (["--load", "50"], "--load is not for --protocol arrivals: use --demand"),
        (["--protocol", "departures", "--demand", "50"], "--demand is not for --protocol depart"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(
    paths: list[str], arguments: list[str], complaint: str
) -> None:
    result = run(*paths, *arguments, "-j", "1")
    assert result.exit_code == 2
    assert complaint in " ".join(result.output.split())


def test_an_empty_workload_is_refused(paths: list[str]) -> None:
    Path(paths[1]).write_text("\n")
    result = run(*paths, "-j", "1")
    assert result.exit_code == 2
    assert "no tasks" in result.output


def test_an_empty_openb_workload_is_refused(tmp_path: Path) -> None:
    paths = [files.nodes(tmp_path, ["n,1000,1000,8,T4"]), files.tasks(tmp_path, [])]
    for protocol in ("arrivals", "departures", "numa"):
        result = run(*map(str, paths), "-j", "1", "--protocol", protocol)
        assert result.exit_code == 2
        assert "tasks.csv: no tasks" in " ".join(result.output.split())


def test_figures_are_shown_even_if_the_plot_cannot_be_written(
    paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(plots, "draw", full_disk)
    result = run(*paths, "--policy", "pack", "--seeds", "1", "--plot", "p.png")
    assert result.exit_code == 6
    assert result.stdout.splitlines()[1].split()[:2] == ["jobs", "pack"]
    assert result.stderr == "Error: --plot p.png: No space left on device\n"


SIMULATE = "from dovetail.cli.main import main; main()"

INTERRUPTED = f"""
import os, signal
fork = os.fork
def interrupted():
    pid = fork()
    if pid:
        signal.raise_signal(signal.SIGINT)
    return pid
os.fork = interrupted
{SIMULATE}
"""
"""An interrupt comes when there is a worker that the parent does not know of yet."""


AT_A_TERMINAL = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""Whoever runs the tests in the background has interrupts ignored, by all processes below."""


def simulating(directory: Path, *arguments: object, script: str = SIMULATE) -> Process:
    script = f"{AT_A_TERMINAL}\n{script}"
    command = [sys.executable, "-c", script, "simulate", *arguments, "-j", "2"]
    return Process(command, directory / "log", own_group=True)


def test_ctrl_c_does_not_wait_for_what_is_under_way(paths: list[str], tmp_path: Path) -> None:
    """Tasks come through a pipe that never ends; a replay has begun as soon as it is opened."""
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    with simulating(tmp_path, paths[0], pipe) as process:
        writing = opened_for_writing(pipe)
        process.signal_group(signal.SIGINT)
        try:
            code = process.wait(60)
        finally:
            os.close(writing)
        assert not is_any_left(process)
    assert (code, process.output.endswith("Aborted!\n")) == (1, True)


def test_ctrl_c_in_the_midst_of_a_fork_leaves_no_worker(paths: list[str], tmp_path: Path) -> None:
    with simulating(tmp_path, *paths, script=INTERRUPTED) as process:
        code = process.wait(60)
        assert not is_any_left(process)
    assert (code, process.output.endswith("Aborted!\n")) == (1, True)


def test_an_interrupt_is_for_the_parent_to_hear(paths: list[str], tmp_path: Path) -> None:
    """Workers go on: which of them a terminal tells first is chance."""
    pipes = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    for pipe in pipes:
        os.mkfifo(pipe)
    chosen = ("--policy", "pack", "--seeds", "1")
    with simulating(tmp_path, paths[0], *pipes, *chosen) as process:
        writing = [opened_for_writing(pipe) for pipe in pipes]
        workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert len(workers) == 2
        for worker in workers:
            os.kill(int(worker), signal.SIGINT)
        for each in writing:
            os.write(each, Path(paths[1]).read_bytes())
            os.close(each)
        assert process.wait(60) == 0, process.output
    assert [line.split()[0] for line in process.output.splitlines()[1:]] == ["a", "b"]


def is_any_left(process: Process) -> bool:
    """Of its group."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def opened_for_writing(pipe: Path) -> int:
    """Waits for a reader."""
    for _ in range(600):
        with suppress(OSError):
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.1)
    raise TimeoutError("nobody reads")


def test_what_is_wrong_with_a_file_is_said_whichever_process_reads_it(paths: list[str]) -> None:
    Path(paths[1]).write_text('{"name": "a", "groups": {}}')
    for cores in ("1", "2"):
        result = run(*paths, "-j", cores, "--seeds", "1,2")
        assert result.exit_code == 2
        assert "line 1: a asks for no resources" in " ".join(result.output.split())


def test_workloads_are_told_apart_even_if_they_have_one_name(
    paths: list[str], tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = files.json_lines(tmp_path / "other/jobs.jsonl", [files.job("t", 10)])
    document = figures(*paths, str(other), "--policy", "pack", "--seeds", "1", "-j", "1")
    assert [each["workload"] for each in document["results"]] == ["jobs", "jobs"]
    assert [len(each["runs"]) for each in document["results"]] == [1, 1]
