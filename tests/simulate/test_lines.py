"""The reader of Dovetail's own workloads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dovetail.core.request import Affinity
from dovetail.simulate import lines
from dovetail.simulate.errors import BadWorkload
from tests.simulate import files


def test_a_line_is_a_request(tmp_path: Path) -> None:
    document = files.job("a", 3, arrives=1, ends=4)
    document["groups"]["_GPU"]["required"] = ["X", "Y|Z"]
    document["groups"]["_NIC"] = {"resources": {"VF": 1}, "forbidden": ["SLOW"]}
    document |= {"isolate": ["_GPU"], "same_subtree": [["_GPU", "_NIC"]]}
    [task] = lines.tasks_in(files.json_lines(tmp_path / "jobs.jsonl", [document]))
    [request] = task.requests
    assert request.groups[0].resources == {"VCPU": 1}
    assert request.groups[1].required == (frozenset("X"), frozenset("YZ"))
    assert request.groups[2].forbidden == {"SLOW"}
    assert request.isolated == {"_GPU"}
    assert request.affinities == (Affinity(frozenset({"_GPU", "_NIC"})),)
    assert (task.name, task.arrives, task.ends) == ("a", 1, 4)


def with_group(suffix: str, group: dict[str, Any]) -> dict[str, Any]:
    document = files.job("a", 1)
    return {**document, "groups": {**document["groups"], suffix: group}}


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ({"name": "a", "groups": {}}, "a asks for no resources"),
        (files.job("a", 0), "Expected `int` >= 1 - at `$.groups[...].resources[...]`"),
        (files.job("a", 1, ends=3), "a ends but does not arrive: say when"),
        (files.job("a", 1, arrives=4, ends=3), "a ends before it arrives"),
        (files.job("a", 1, isolate=["_NIC"]), "not ['_NIC']"),
        (files.job("a", 1, same_subtree=[[]]), "Expected `array` of length >= 1"),
        (files.job("a", 1, colour="red"), "unknown field `colour`"),
        (with_group("_NIC", {"required": ["FAST"]}), "group '_NIC' has no resources and no same_"),
        (with_group("", {"required": ["FAST"]}), "group '' has no resources and no same_subtree"),
        (with_group("_NIC", {"resources": {"VF": 1}, "required": ["A|"]}), "`$.groups[...].requ"),
    ],
)
def test_what_is_wrong_with_a_request_is_said_with_its_line(
    tmp_path: Path, document: dict[str, Any], complaint: str
) -> None:
    path = files.json_lines(tmp_path / "jobs.jsonl", [files.job("good", 1), document])
    with pytest.raises(BadWorkload) as caught:
        list(lines.tasks_in(path))
    assert f"{path}, line 2" in str(caught.value)
    assert complaint in str(caught.value)


def test_what_is_wrong_with_a_fleet_is_said_with_its_line(tmp_path: Path) -> None:
    path = files.json_lines(tmp_path / "fleet.jsonl", [files.host("a", 1), files.host("a", 1)])
    with pytest.raises(BadWorkload, match="a stands in this fleet already"):
        lines.plan(path)
