"""`dovetail classes`: what the server says laid out, and the rules on files without a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from dovetail.cli.main import main
from tests.cli.conftest import Parrot, commands

NOWHERE = {"DOVETAIL_SERVER": "http://127.0.0.1:9"}
CLASSES, DEVICES = "/dovetail/v1/classes", "/dovetail/v1/devices"


def selecting(*expressions: tuple[str, str, list[str]]) -> dict[str, Any]:
    listed = [{"key": k, "operator": o, "values": v} for k, o, v in expressions]
    return {"resourceSelector": [{"matchExpressions": listed}]}


LARGE = selecting(("Kind", "In", ["gpu"]), ("memory", "GtEq", ["30G"]))
SHOWN = {
    "name": "large",
    "spec": LARGE,
    "created_at": "2026-01-01T00:00:00Z",
    "allocatable": 2,
    "requested": 1,
    "available": 1,
}
SMALL_GPU = {"node": "n1", "name": "g0", "kind": "gpu", "properties": {"memory": "16G"}}
LARGE_GPU = {"node": "n2", "name": "g0", "kind": "gpu", "properties": {"memory": "80G"}}


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Options that name a file of classes and one of devices."""
    manifest = {"metadata": {"name": "large"}, "spec": LARGE}
    pair = {"metadata": {"name": "pair"}, "spec": {"members": [{"class": "large", "count": 2}]}}
    (tmp_path / "classes.yaml").write_text(yaml.safe_dump_all([manifest, pair]))
    (tmp_path / "devices.json").write_text(json.dumps({"devices": [SMALL_GPU, LARGE_GPU]}))
    return ["--classes", f"{tmp_path}/classes.yaml", "--devices", f"{tmp_path}/devices.json"]


def offline(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["classes", *arguments], env=NOWHERE)


def test_classes_are_listed_with_their_units(parrot: Parrot) -> None:
    pair = {"members": [{"class": "large", "count": 2}], "same": ["numa"]}
    nested = {**SHOWN, "name": "pair", "spec": pair, "available": 0}
    parrot.says("GET", CLASSES, {"classes": [SHOWN, nested]})
    run = commands(parrot.url)
    assert [line.split(maxsplit=4) for line in run("classes", "list").stdout.splitlines()] == [
        ["CLASS", "ALLOCATABLE", "REQUESTED", "AVAILABLE", "SELECTS"],
        ["large", "2", "1", "1", "Kind in (gpu),memory>=30G"],
        ["pair", "2", "1", "0", "made of 2 large with the same numa"],
    ]
    assert json.loads(run("classes", "list", "-o", "json").stdout)["classes"][0] == SHOWN
    parrot.says("GET", CLASSES, {"classes": []})
    assert run("classes", "list").stdout == "There is none.\n"


def test_one_class_is_shown(parrot: Parrot) -> None:
    parrot.says("GET", f"{CLASSES}/large", SHOWN)
    found = commands(parrot.url)("classes", "show", "large")
    assert found.stdout.splitlines()[:2] == ["large", "  Kind in (gpu),memory>=30G"]
    assert found.stdout.split()[-3:] == ["2", "1", "1"]


def test_an_explanation_asks_the_server_for_what_no_file_says(
    parrot: Parrot, files: list[str]
) -> None:
    parrot.says("GET", CLASSES, {"classes": [SHOWN]})
    parrot.says("GET", DEVICES, {"devices": [{**LARGE_GPU, "used": 1, "colour": "red"}]})
    run = commands(parrot.url)
    assert "large selects 1 of 1 device:" in run("classes", "explain", "large").stdout
    found = run("classes", "explain", "large", *files[2:])
    assert "large selects 1 of 2 devices: 1 unit, 1 of them healthy." in found.stdout
    assert [path for _, path, _ in parrot.asked] == [CLASSES, DEVICES, CLASSES]


def test_a_class_is_explained_over_the_fleet_and_on_a_node(files: list[str]) -> None:
    found = offline("explain", "large", *files)
    assert found.exit_code == 0
    assert found.stdout.splitlines() == [
        "large selects 1 of 2 devices: 1 unit, 1 of them healthy.",
        "",
        "DEVICES LEFT  AFTER",
        "           2  in the fleet",
        "           2  Kind in (gpu)",
        "           1  memory>=30G",
        "",
        "Nearest of those that are not selected:",
        "  n1/g0",
        "    memory is '16G', not at least 30G",
    ]
    told = json.loads(offline("explain", "large", "-o", "json", *files).stdout)["explanation"]
    assert (told["of"], told["total"], told["fitting"]) == ("devices", 2, 1)
    assert told["nearest"][0]["findings"][0] == {
        "reason": "attribute",
        "group": None,
        "constraint": "memory>=30G",
        "met": False,
        "ever": False,
        "provider": "n1/g0",
        "provider_uuid": None,
        "words": "memory is '16G', not at least 30G",
        "seen": "16G",
    }
    found = offline("explain", "large", "--node", "n1", *files)
    assert found.exit_code == 1
    assert found.stdout.splitlines() == [
        "n1/g0: not selected",
        "  ok  Kind is 'gpu', equal to gpu",
        "  no  memory is '16G', not at least 30G",
    ]
    told = json.loads(offline("explain", "large", "--node", "n2", "-o", "json", *files).stdout)
    assert (told["class_name"], told["units"], told["healthy"]) == ("large", 1, 1)
    assert told["explanation"]["verdict"] == "fits"
    assert told["explanation"]["nearest"][0]["fits"] is True
    assert "it is made of 2 large" in offline("explain", "pair", *files).stdout


def test_what_is_not_there_is_refused_by_name(files: list[str]) -> None:
    found = offline("explain", "small", *files)
    assert (found.exit_code, "'small' is defined; there is large, pair" in found.stderr) == (
        3,
        True,
    )
    found = offline("explain", "large", "--node", "n9", *files)
    assert (found.exit_code, "node 'n9'" in found.stderr) == (3, True)


def test_lint_tells_what_is_odd_and_exits_with_no(files: list[str], tmp_path: Path) -> None:
    assert offline("lint", *files).stdout == "Nothing is odd about 2 classes.\n"
    odd = {"metadata": {"name": "odd"}, "spec": selecting(("Memory", "GtEq", ["30G"]))}
    (tmp_path / "odd.json").write_text(json.dumps(odd))
    found = offline("lint", "--classes", f"{tmp_path}/odd.json", *files[2:])
    assert found.exit_code == 1
    kinds = {line.split()[1] for line in found.stdout.splitlines()[1:]}
    assert kinds == {"unreachable", "near-miss"}
    told = yaml.safe_load(
        offline("lint", "--classes", f"{tmp_path}/odd.json", *files[2:], "-o", "yaml").stdout
    )
    assert {each["class_name"] for each in told["findings"]} == {"odd"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "neither YAML nor JSON"),
        ("[1]", "class 1: has no name"),
        ("metadata: {name: x}", "spec"),
        ("metadata: {name: x}\nspec: {resourceSelector: 5}", "spec.resourceSelector"),
        ("classes: [{name: x, spec: {}}, {name: x, spec: {}}]", "class 2: 'x' is there already"),
    ],
)
def test_a_bad_file_of_classes_is_told(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "bad").write_text(text)
    found = offline("lint", "--classes", f"{tmp_path}/bad", "--devices", "/dev/null")
    assert (found.exit_code, complaint in found.stderr) == (6, True)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[{node: n1}]", "device 1: Object missing required field `name`"),
        ("[{node: n1, name: g, kind: k, unit: 3}]", "no such field: 'unit'"),
        ("[{node: n1, name: g, kind: k, units: 0}]", "units: 0; at least 1"),
        ("[{node: n1, name: g, kind: k, properties: {memory: 16}}]", "$.properties"),
    ],
)
def test_a_bad_file_of_devices_is_told(
    tmp_path: Path, files: list[str], text: str, complaint: str
) -> None:
    (tmp_path / "bad").write_text(text)
    found = offline("lint", *files[:2], "--devices", f"{tmp_path}/bad")
    assert (found.exit_code, complaint in found.stderr) == (6, True)


def test_a_class_goes_to_dra_and_back(files: list[str], tmp_path: Path) -> None:
    made = offline("to-dra", "large", *files[:2])
    assert made.exit_code == 0
    assert yaml.safe_load(made.stdout)["kind"] == "DeviceClass"
    (tmp_path / "dra.yaml").write_text(made.stdout)
    back = offline("from-dra", f"{tmp_path}/dra.yaml", "-o", "json")
    assert back.exit_code == 0
    document = json.loads(back.stdout)
    assert (document["kind"], document["metadata"]) == ("ResourceClass", {"name": "large"})
    assert document["spec"] == LARGE


def test_what_dra_cannot_say_is_refused(files: list[str], tmp_path: Path) -> None:
    found = offline("to-dra", "pair", *files[:2])
    assert found.exit_code == 1
    assert "'pair'" in found.stderr
    (tmp_path / "two.yaml").write_text("a: 1\n---\nb: 2\n")
    assert offline("from-dra", f"{tmp_path}/two.yaml").exit_code == 6
