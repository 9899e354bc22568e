"""Commands that look at the fleet and change it, against a real server."""

from __future__ import annotations

import json
import shlex
import uuid
from pathlib import Path

import pytest
import yaml

from dovetail.cli.run.demo import welcome
from tests.cli.conftest import Run

FITS = "resources_VM=VCPU:8,MEMORY_MB:16384&resources_ACC=FPGA:1&same_subtree=_VM,_ACC&limit=2"
NUMA = "a5114c6b-5216-5344-8ab6-adfb09b311e3"


def test_a_host_is_drawn_with_names_and_use(run: Run) -> None:
    drawn = run("tree", "rack1-host1").stdout.splitlines()
    assert drawn[0].startswith("rack1-host1 ")
    assert "DISK_GB 40/1,700" in drawn[0]
    assert drawn[2] == "│  ├─ rack1-host1_numa0_fpga0        FPGA 1/1"
    assert drawn[-1].startswith("      └─ rack1-host1_numa1_nic0_pf1")
    assert len(drawn) == 13


@pytest.mark.parametrize("name", ["rack1-host1_numa0", NUMA])
def test_drawing_begins_at_the_provider_named(run: Run, name: str) -> None:
    drawn = run("tree", name, "-v", "--consumers").stdout
    assert drawn.startswith("rack1-host1_numa0 ")
    assert "│  traits: HW_CPU_X86_AVX512F HW_NUMA_ROOT" in drawn
    assert "holds VCPU:4 MEMORY_MB:8192" in drawn
    assert "rack1-host1_numa1" not in drawn


def test_all_hosts_are_drawn_without_a_name(run: Run) -> None:
    trees = json.loads(run("tree", "-o", "json").stdout)["trees"]
    assert len([tree for tree in trees if tree["name"].startswith("rack")]) == 36
    (numa,) = [node for node in trees[2]["children"] if node["name"] == "rack1-host1_numa0"]
    assert numa["inventories"]["VCPU"] == {
        "total": 32,
        "reserved": 2,
        "allocation_ratio": 2.0,
        "capacity": 60,
        "used": 4,
    }


def test_candidates_have_names(run: Run) -> None:
    found = run("candidates", FITS)
    assert found.exit_code == 0
    lines = found.stdout.splitlines()
    assert lines[0].split() == ["#", "HOST", "PROVIDER", "RESOURCES", "GROUPS"]
    assert lines[1].split() == [
        "1",
        "rack1-host1",
        "rack1-host1_numa0",
        "VCPU:8",
        "MEMORY_MB:16384",
        "_VM",
    ]
    assert lines[2].split() == ["rack1-host1_numa0_fpga1", "FPGA:1", "_ACC"]
    assert lines[3].split()[0] == "2"


def test_options_say_the_same_as_a_query(run: Run) -> None:
    options = ["-g", "VM=VCPU:8,MEMORY_MB:16384", "-g", "ACC=FPGA:1"]
    options += ["--same-subtree", "VM,ACC", "--limit", "2"]
    asked = run("candidates", FITS, "-o", "json").stdout
    assert run("candidates", *options, "-o", "json").stdout == asked
    assert yaml.safe_load(run("candidates", FITS, "-o", "yaml").stdout) == json.loads(asked)


def test_storage_that_hosts_share_is_not_the_host(run: Run) -> None:
    found = run("candidates", "-r", "VCPU:1", "-r", "DISK_GB:5000", "--limit", "5", "-o", "json")
    for place in json.loads(found.stdout)["candidates"]:
        names = {given["name"] for given in place["allocations"].values()}
        assert place["host"].startswith("rack")
        assert any(name.startswith("storage-") for name in names)


def test_hosts_in_queries_go_by_name(run: Run) -> None:
    for arguments in (["--in-tree", "rack1-host4"], ["in_tree=rack1-host4"]):
        found = run("candidates", *arguments, "-r", "VCPU:1", "-o", "json")
        assert {place["host"] for place in json.loads(found.stdout)["candidates"]} == {
            "rack1-host4"
        }
    unknown = run("candidates", "-r", "VCPU:1", "--in-tree", "nowhere")
    assert (unknown.exit_code, "'nowhere'" in unknown.stderr) == (3, True)


def test_a_request_of_groups_alone_keeps_to_a_host(run: Run) -> None:
    groups = ["-g", "VM=VCPU:1", "-g", "ACC=FPGA:1"]
    found = run("candidates", *groups, "--in-tree", "rack1-host4", "-o", "json")
    places = json.loads(found.stdout)["candidates"]
    names = {given["name"] for place in places for given in place["allocations"].values()}
    assert len(places) == 8
    assert all(name.startswith("rack1-host4_") for name in names)


def test_nothing_fits_is_told_by_the_exit_code(run: Run) -> None:
    found = run("candidates", "resources=VCPU:5000")
    assert found.exit_code == 1
    assert found.stdout == ""
    assert "dovetail explain 'resources=VCPU:5000'" in found.stderr
    as_json = run("candidates", "resources=VCPU:5000", "-o", "json")
    assert (as_json.exit_code, json.loads(as_json.stdout)) == (1, {"candidates": []})


def test_usage_of_the_fleet_a_host_a_consumer_and_a_project(run: Run) -> None:
    fleet = run("usage", "-o", "json")
    assert json.loads(fleet.stdout)["classes"]["VGPU"] == {
        "providers": 48,
        "capacity": 384,
        "used": 0,
        "free": 384,
        "largest": 8,
    }
    host = run("usage", "rack1-host1").stdout.splitlines()
    assert host[1].split() == ["VCPU", "2", "120", "4", "116", "3", "60"]
    tree = json.loads(run("tree", "rack1-host1", "-o", "json").stdout)["trees"][0]
    holder = tree["consumers"][0]
    held = run("usage", "--consumer", holder["consumer"]).stdout
    assert held.splitlines()[1].split() == ["rack1-host1", "DISK_GB", "40"]
    project = run("usage", "--project", holder["project_id"]).stdout
    assert "DISK_GB" in project
    assert run("usage", "rack1-host1", "--project", "x").exit_code == 2


def test_providers_show_the_names_of_parent_and_host(run: Run) -> None:
    found = run("providers", "rack1-host1_numa0").stdout.splitlines()
    assert found[1].split() == [
        "rack1-host1_numa0",
        NUMA,
        "rack1-host1",
        "rack1-host1",
        found[1].split()[-1],
    ]
    listed = json.loads(
        run("providers", "--in-tree", "rack1-host1", "--trait", "CUSTOM_NIC", "-o", "json").stdout
    )
    assert [p["name"] for p in listed["providers"]] == [
        "rack1-host1_numa0_nic0",
        "rack1-host1_numa1_nic0",
    ]
    assert run("providers", "nowhere").exit_code == 1
    assert run("providers", "-r", "VGPU:8").stdout.count("gpu") == 48


def test_traits_in_use_and_of_a_provider(run: Run) -> None:
    assert "CUSTOM_PHYSNET_A" in run("traits").stdout.split()
    assert "HW_CPU_X86_SSE" not in run("traits").stdout.split()
    assert "HW_CPU_X86_SSE" in run("traits", "--all").stdout.split()
    assert run("traits", "rack1-host1_numa0").stdout.split() == [
        "HW_CPU_X86_AVX512F",
        "HW_NUMA_ROOT",
    ]
    assert run("traits", "rack1-host1_numa0", "--prefix", "HW_NUMA").stdout == "HW_NUMA_ROOT\n"


def test_what_is_loaded_can_be_dumped_and_loaded_elsewhere(run: Run, tmp_path: Path) -> None:
    name = f"new-{uuid.uuid4()}"
    host = {"name": name, "inventories": {"VCPU": 8}, "children": [{"name": f"{name}_child"}]}
    file = tmp_path / "fleet.jsonl"
    file.write_text(json.dumps(host))
    loaded = run("load", str(file))
    assert loaded.stdout == "Added 2 providers and 0 consumers.\n"
    written = tmp_path / "dump.jsonl"
    assert run("dump", name, "-f", str(written)).exit_code == 0
    dumped = json.loads(written.read_bytes())
    del dumped["uuid"], dumped["children"][0]["uuid"]
    assert dumped == host
    again = run("load", "-", stdin=json.dumps(host).encode())
    assert (again.exit_code, "already exists" in again.stderr) == (3, True)
    assert f'"{name}"' in run("dump").stdout


def test_a_bad_line_is_named(run: Run) -> None:
    bad = run("load", "-", stdin=b'{"name": "x"}\n{"name": "y", "colour": 1}\n')
    assert bad.exit_code == 3
    assert "line 2" in bad.stderr
    assert "colour" in bad.stderr


def test_release_gives_back_what_a_consumer_held(run: Run) -> None:
    name, consumer = f"new-{uuid.uuid4()}", str(uuid.uuid4())
    lines = [
        {"name": name, "inventories": {"VCPU": 8}},
        {"consumer": consumer, "allocations": {name: {"VCPU": 3}}},
    ]
    run("load", "-", stdin="\n".join(map(json.dumps, lines)).encode())
    assert "VCPU 3/8" in run("tree", name).stdout
    assert run("release", consumer).exit_code == 0
    assert "VCPU 0/8" in run("tree", name).stdout
    assert run("release", consumer).exit_code == 3


def test_a_sound_ledger_passes_the_audit(run: Run) -> None:
    found = run("audit")
    assert found.exit_code == 0
    assert found.stdout.endswith("No faults.\n")
    assert run("audit", "--fix").exit_code == 0


def test_a_claim_is_taken_explained_and_given_back(run: Run) -> None:
    query = "resources_VM=VCPU:7&resources_ACC=FPGA:1&same_subtree=_VM,_ACC"
    taken = json.loads(run("claim", query, "--project", "blue", "-o", "json").stdout)
    consumer = taken["consumer"]
    held = json.loads(run("usage", "--consumer", consumer, "-o", "json").stdout)
    assert {given["name"] for given in held["allocations"].values()} == {
        given["name"] for given in taken["allocations"].values()
    }
    decisions = run("decisions", "--consumer", consumer).stdout
    assert decisions.startswith(f"{taken['decision']}  ")
    assert f"asked   {query}" in decisions
    assert run("release", consumer).exit_code == 0


def test_a_claim_that_can_never_fit_is_explained(run: Run) -> None:
    refused = run("claim", "-r", "VCPU:5000")
    assert refused.exit_code == 1
    assert "room for VCPU:5000" in refused.stdout
    assert "What would help:" in refused.stdout


def test_why_a_host_does_not_fit(run: Run) -> None:
    judged = run("explain", "-r", "FPGA:1", "--host", "rack1-host2")
    assert judged.exit_code == 1
    assert judged.stdout.startswith("rack1-host2 does not fit.\n")
    assert run("explain", "-r", "FPGA:1").exit_code == 0
    unknown = run("explain", "-r", "FPGA:1", "--host", "nowhere")
    assert (unknown.exit_code, "'nowhere'" in unknown.stderr) == (3, True)


def test_what_if_hosts_came_and_went(run: Run, tmp_path: Path) -> None:
    numa = {"name": "new_numa", "inventories": {"VCPU": 5000}}
    (tmp_path / "new.jsonl").write_text(json.dumps({"name": "new", "children": [numa]}))
    found = run("whatif", "-r", "VCPU:5000", "--add", str(tmp_path / "new.jsonl"))
    assert found.exit_code == 0
    assert found.stdout.splitlines()[-1].split() == ["1", "new", "new_numa", "VCPU:5000"]
    assert run("candidates", "-r", "VCPU:5000").exit_code == 1
    without = run("whatif", "-r", "VCPU:1", "--in-tree", "rack1-host1", "--drain", "rack1-host1")
    assert without.exit_code == 1


def test_the_commands_that_the_demo_shows(run: Run, demo: str) -> None:
    shown = [line.strip() for line in welcome(demo).replace("\\\n", "").splitlines()]
    tried = [shlex.split(line) for line in shown if line.startswith("dovetail ")]
    codes = {tuple(arguments[1:2]): run(*arguments[1:]).exit_code for arguments in tried}
    assert codes == {("candidates",): 0, ("explain",): 1, ("tree",): 0, ("usage",): 0}
