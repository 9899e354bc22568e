"""`dovetail machines`: a cluster read over HTTP, and files; what is shown, and how it exits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import Result

from dovetail.podfit.objects import Node
from tests.cli.conftest import Parrot
from tests.cli.machines.clusters import IMPERATOR, RECORDS, kubeconfig, listed, machines, tell
from tests.machines.building import node
from tests.machines.lab import GROUP, Lab, kind, small

NODES: dict[str, str | list[str]] = {"n1": "small", "n2": "large"}
FORBIDDEN = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "not for ada"}

Run = Callable[..., Result]


@pytest.fixture
def lab() -> Lab:
    """All of a type are sold, and one guest waits for each."""
    lab = Lab(small(kind("small", available=2), kind("large", cpu=8, available=1), nodes=NODES))
    lab.sold("first", "small")
    lab.sold("second", "small", namespace="other")
    lab.ask("third", "small")
    lab.ask("lost", "large", nodeSelector={"zone": "x"})
    return lab


@pytest.fixture
def run(parrot: Parrot, lab: Lab, tmp_path: Path) -> Run:
    tell(parrot, lab)
    config = str(kubeconfig(tmp_path, parrot.url))
    return lambda *arguments, **more: machines(*arguments, "--kubeconfig", config, **more)


def words(line: str) -> list[str]:
    return line.split()


def test_units_holders_and_those_who_wait_are_listed(run: Run) -> None:
    found = run("list")
    assert found.exit_code == 0
    types, holders, waiting = found.stdout.split("\n\n")
    assert [*map(words, types.splitlines())] == [
        ["MACHINE", "TYPE", "MAXIMUM", "RESERVED", "USED", "WAITING", "FREE"],
        [GROUP, "small", "2", "0", "2", "1", "0"],
        [GROUP, "large", "1", "1", "0", "1", "1"],
    ]
    assert {words(line)[1] for line in holders.splitlines()[2:]} == {"team/first", "other/second"}
    assert [words(line)[:2] + words(line)[3:4] for line in waiting.splitlines()[2:]] == [
        ["large", "team/lost", "NoNodeFits"],
        ["small", "team/third", "SoldOut"],
    ]


def test_the_list_is_data_too(run: Run) -> None:
    told = json.loads(run("list", GROUP, "-o", "json").stdout)
    assert told["refused"] == []
    (machine,) = told["machines"]
    assert machine["types"][0] == {
        "name": "small",
        "maximum": 2,
        "reserved": 0,
        "used": 2,
        "waiting": 1,
        "free": 0,
    }
    assert machine["waiting"][1]["message"] == "all 2 units of small are sold"
    assert yaml.safe_load(run("list", GROUP, "-o", "yaml").stdout) == told


def test_a_machine_that_is_not_accepted_says_why(parrot: Parrot, run: Run, lab: Lab) -> None:
    parrot.says("GET", RECORDS, listed([]))
    assert run("list").stdout == (
        f"{GROUP} is not accepted: it was not judged yet: does the operator run?\n"
    )
    told = {"type": "Accepted", "status": "False", "message": "spec.x: no", "observedGeneration": 1}
    refused = msgspec.structs.replace(
        lab.machine, status=msgspec.convert({"conditions": [told]}, type(lab.machine.status))
    )
    parrot.says("GET", f"{IMPERATOR}/machines", listed([refused]))
    assert run("list").stdout == f"{GROUP} is not accepted: spec.x: no\n"
    found = run("explain", "third")
    assert found.exit_code == 1
    assert f"Machine {GROUP} of group '{GROUP}' is not accepted" in found.stdout


def test_who_may_read_machines_alone_is_shown_their_status(
    parrot: Parrot, run: Run, lab: Lab
) -> None:
    status = msgspec.convert(lab.plan().status, type(lab.machine.status))
    parrot.says(
        "GET",
        f"{IMPERATOR}/machines",
        listed([msgspec.structs.replace(lab.machine, status=status)]),
    )
    everything = json.loads(run("list", "-o", "json").stdout)["machines"][0]
    parrot.says("GET", "/api/v1/nodes", FORBIDDEN, 403)
    found = run("list", "-o", "json")
    assert found.exit_code == 0
    (told,) = json.loads(found.stdout)["machines"]
    assert (told["types"], told["waiting"]) == (everything["types"], everything["waiting"])
    assert [each["pod"] for each in told["holders"]] == ["first", "second"]
    assert run("explain", "third").exit_code == 5


def test_what_only_the_operator_may_see_is_not_needed(parrot: Parrot, run: Run) -> None:
    for path in (
        "/api/v1/namespaces/dovetail/services",
        "/apis/apps/v1/namespaces/dovetail/statefulsets",
    ):
        parrot.says("GET", path, FORBIDDEN, 403)
    assert run("list").exit_code == 0


def test_a_guest_is_explained(run: Run) -> None:
    found = run("explain", "team/third")
    assert found.exit_code == 1
    assert found.stdout.splitlines() == [
        "team/third waits: all 2 units of small are sold.",
        "",
        "NODES LEFT  AFTER",
        "         2  in the pool",
        "         2  a Machine of its group, and accepted",
        "         2  a type of that name",
        "         0  a unit that is not sold",
        "         0  serving the type, and ready",
        "         0  labels as the pod's node selector and affinity want them",
        "         0  room for a unit where stock makes way",
        "",
        "Nearest:",
        "  n1",
        "    short no unit of small is left; here they are held by team/first, other/second",
        "",
        "What would help:",
        "  1 node fits if it is of type large (cpu 8, memory 32Gi)",
        "    imperator.tenzen-y.io/machine-type=large",
        "  1 node fits if team/first gives its unit back",
        "  1 node fits if there are 3 units of small",
        "    spec.machineTypes[0].available=3",
        "",
        "Number 1 of 1 in the line.",
    ]
    told = json.loads(run("explain", "third", "-o", "json").stdout)
    assert (told["machine"], told["type"], told["line"]) == (
        GROUP,
        "small",
        {"position": 1, "length": 1},
    )
    assert told["explanation"]["verdict"] == "not_now"


def test_who_has_a_unit_exits_with_yes(run: Run) -> None:
    found = run("explain", "first")
    assert (found.exit_code, found.stdout.startswith("team/first has its unit")) == (0, True)


def test_a_pod_that_is_no_guest_or_could_be_two_is_refused(
    run: Run, lab: Lab, parrot: Parrot
) -> None:
    found = run("explain", "nobody")
    assert (found.exit_code, "No guest 'nobody'" in found.stderr) == (3, True)
    lab.ask("twin", "small", meta={"uid": "a"})
    lab.guests["b"] = lab.ask("twin", "small", namespace="other", meta={"uid": "b"})
    lab.guests["a"] = lab.ask("twin", "small", meta={"uid": "a"})
    tell(parrot, lab)
    found = run("explain", "twin")
    assert (found.exit_code, "other/twin, team/twin" in found.stderr) == (3, True)


def test_a_forecast(run: Run) -> None:
    found = run("forecast")
    assert found.exit_code == 0
    head, *rows = found.stdout.splitlines()
    assert head.endswith("MORE  MORE IF IDLE  BLOCKED BY")
    assert [words(row)[1:8] for row in rows] == [
        ["small", "2", "2", "0", "0", "2", "2"],
        ["large", "1", "0", "1", "0", "1", "1"],
    ]
    told = json.loads(run("forecast", GROUP, "-o", "json").stdout)["types"][0]
    assert told["more"] == {"at_least": 2, "at_most": 2}
    assert told["node"] == "n1"


def test_a_machine_that_is_not_there_is_refused_by_name(run: Run) -> None:
    for verb in ("list", "forecast"):
        found = run(verb, "nothing")
        assert (found.exit_code, f"there is {GROUP}" in found.stderr) == (3, True)


def test_what_goes_wrong_has_its_exit_code(parrot: Parrot, run: Run, tmp_path: Path) -> None:
    parrot.says("GET", f"{IMPERATOR}/machines", {"code": 404, "message": "no such path"}, 404)
    found = run("list")
    assert (found.exit_code, "The cluster has no machines" in found.stderr) == (3, True)
    nowhere = str(kubeconfig(tmp_path, "http://127.0.0.1:9"))
    assert machines("list", "--kubeconfig", nowhere).exit_code == 4
    assert machines("list", "--kubeconfig", str(tmp_path / "none")).exit_code == 6


def test_a_ledger_of_another_version_is_left_alone(run: Run, tmp_path: Path) -> None:
    found = run("list", "--database", f"sqlite:///{tmp_path}/ledger.db")
    assert found.exit_code == 6
    assert "not of this version" in found.stderr
    assert not (tmp_path / "ledger.db").exists()


# -- plans -----------------------------------------------------------------------------------------


def written(folder: Path, spec: dict[str, Any], name: str = GROUP) -> str:
    document = {
        "apiVersion": "imperator.tenzen-y.io/v1alpha1",
        "kind": "Machine",
        "metadata": {
            "name": name,
            "labels": {"imperator.tenzen-y.io/machine-group": name},
        },
        "spec": spec,
    }
    file = folder / "machine.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return str(file)


def node_file(folder: Path, *nodes: Node) -> str:
    items = [{"apiVersion": "v1", "kind": "Node", **msgspec.to_builtins(each)} for each in nodes]
    file = folder / "nodes.yaml"
    file.write_text(yaml.safe_dump({"kind": "List", "items": items}), encoding="utf-8")
    return str(file)


def test_a_plan_says_what_would_change(run: Run, tmp_path: Path) -> None:
    spec = small(kind("small", available=3), kind("large", cpu=8, available=1), nodes=NODES)
    found = run("plan", "-f", written(tmp_path, spec))
    assert found.exit_code == 0, found.output
    assert found.stdout.splitlines()[:5] == [
        f"{GROUP} would be accepted, and its stock fits.",
        "",
        "TYPE   TO HOLD  VERDICT  WHERE",
        "small        1  fits     n1:1",
        "large        1  fits     n2:1",
    ]
    assert "team/third  small  n1" in found.stdout
    told = json.loads(run("plan", "-f", written(tmp_path, spec), "-o", "json").stdout)
    assert (told["accepted"], told["fits"]) == (True, True)
    assert [each["pod"] for each in told["sold"]] == ["team/third"]
    assert [each["pod"] for each in told["guests"]] == ["other/second", "team/first"]


def test_faults_are_told_by_path_and_exit_with_no(run: Run, tmp_path: Path) -> None:
    spec = small(kind("small", available=1), nodes={"n1": "small", "n9": "tiny"})
    found = run("plan", "-f", written(tmp_path, spec))
    assert found.exit_code == 1
    assert found.stdout.splitlines() == [
        f"{GROUP} would not be accepted.",
        "  spec.nodePool[1].machineType[0].name: there is no type 'tiny' in machineTypes",
        "  spec.nodePool[1].name: there is no node 'n9'",
    ]


def test_a_shape_that_is_sold_stays(run: Run, tmp_path: Path) -> None:
    spec = small(kind("small", cpu=2), kind("large", cpu=8, available=1), nodes=NODES)
    found = run("plan", "-f", written(tmp_path, spec))
    assert found.exit_code == 1
    assert "while units are sold: other/second, team/first" in found.stdout


def test_a_plan_against_a_file_of_nodes_needs_no_cluster(tmp_path: Path) -> None:
    file = node_file(tmp_path, node("n1", cpu=16, gpus=0), node("n2", cpu=16, gpus=0))
    spec = small(kind("small", available=5), nodes={"n1": "small", "n2": "small"})
    found = machines("plan", "-f", written(tmp_path, spec), "--nodes", file)
    assert found.exit_code == 0, found.output
    assert "small        5  fits     n1:4, n2:1" in found.stdout
    assert "+ StatefulSet small-general-machine" in found.stdout
    assert "+ label imperator.tenzen-y.io/node-pool=ready" in found.stdout
    spec = small(kind("small", available=9), nodes={"n1": "small", "n2": "small"})
    found = machines("plan", "-f", written(tmp_path, spec), "--nodes", file)
    assert found.exit_code == 1
    assert "spec.machineTypes[0].available: 8 of 9 fit" in found.stdout


def test_pods_in_the_file_take_room(tmp_path: Path) -> None:
    file = Path(node_file(tmp_path, node("n1", cpu=16, gpus=0)))
    busy = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "busy", "namespace": "default"},
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "6"}}}],
        },
    }
    file.write_text(f"{file.read_text()}---\n{yaml.safe_dump(busy)}", encoding="utf-8")
    spec = small(kind("small", available=3), nodes={"n1": "small"})
    found = machines("plan", "-f", written(tmp_path, spec), "--nodes", str(file))
    assert found.exit_code == 1
    assert found.stdout.splitlines()[:4] == [
        f"{GROUP} would be accepted, but not all of its stock is known to fit.",
        "",
        "TYPE   TO HOLD  VERDICT  WHERE  BLOCKED BY",
        "small        3  short    n1:2   n1: Insufficient cpu: wants 4, free 2 of 16, 2 short",
    ]


def test_other_machines_in_the_file_hold_their_nodes(tmp_path: Path) -> None:
    file = Path(node_file(tmp_path, node("n1", cpu=16, gpus=0)))
    spec = small(kind("small"), nodes={"n1": "small"})
    other = Path(written(tmp_path, spec, "other")).read_text(encoding="utf-8")
    file.write_text(f"{file.read_text()}---\n{other}", encoding="utf-8")
    found = machines("plan", "-f", written(tmp_path, spec), "--nodes", str(file))
    assert found.exit_code == 1
    assert "spec.nodePool[0].name: node 'n1' belongs to Machine other" in found.stdout


def test_a_machine_is_read_from_standard_input(tmp_path: Path) -> None:
    file = node_file(tmp_path, node("n1", cpu=16, gpus=0))
    content = Path(written(tmp_path, small(kind("small"), nodes={"n1": "small"}))).read_text()
    assert machines("plan", "-f", "-", "--nodes", file, stdin=content).exit_code == 0


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("kind: Node\n", "one Machine is expected, not 0"),
        ("kind: Machine\napiVersion: v1\n", "imperator.tenzen-y.io/v1alpha1 is expected"),
        ("{", "neither YAML nor JSON"),
    ],
)
def test_a_file_without_a_machine_is_refused(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "machine.yaml"
    file.write_text(content, encoding="utf-8")
    found = machines("plan", "-f", str(file), "--nodes", node_file(tmp_path))
    assert (found.exit_code, words in found.stderr) == (6, True)
