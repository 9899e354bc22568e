"""`dovetail machines` on a real cluster says what the operator does, and changes nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from dovetail.cli.main import main
from tests.kube.machines.bed import MACHINES, Bed, example_nodes, example_spec, machine_bed

GUESTS = [f"train-{number}" for number in range(1, 5)]


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    """The specification's example, all of compute-medium sold, and one who waits."""
    with machine_bed(tmp_path_factory.mktemp("machines")) as running:
        running.cluster.apply(*example_nodes())
        running.create_machine(example_spec())
        running.await_ready()
        for name in GUESTS:
            running.create_guest(name, "compute-medium")
        running.await_usage("compute-medium", (4, 0, 4, 0))
        running.create_guest("late", "compute-medium")
        running.await_usage("compute-medium", (4, 0, 4, 1))
        yield running


def run(bed: Bed, *arguments: str, kubeconfig: Path | None = None) -> Result:
    config = str(kubeconfig or bed.cluster.kubeconfig)
    return CliRunner().invoke(main, ["machines", *arguments, "--kubeconfig", config])


def told(bed: Bed, *arguments: str) -> Any:
    found = run(bed, *arguments, "-o", "json")
    assert found.exit_code in (0, 1), found.output
    return json.loads(found.stdout)


def written(folder: Path, spec: dict[str, Any], bed: Bed) -> str:
    found = bed.get(f"{MACHINES}/general-machine")
    file = folder / "machine.yaml"
    file.write_text(yaml.safe_dump({**found, "spec": spec}), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize("with_ledger", [False, True], ids=["by pods", "by the ledger"])
def test_the_list_is_what_the_operator_tells(bed: Bed, with_ledger: bool) -> None:
    ledger = ["--database", bed.database] if with_ledger else []
    (found,) = told(bed, "list", *ledger)["machines"]
    status = bed.status()
    assert found["types"] == [
        {"name": each["name"], **each["usage"], "free": each["free"]}
        for each in status["availableMachines"]
    ]
    assert found["waiting"] == status["waiting"]
    assert sorted(each["pod"] for each in found["holders"]) == GUESTS
    assert {each["node"] for each in found["holders"]} == {"eriri"}
    assert {each["type"]: each["status"] for each in found["conditions"]} == {
        each["type"]: each["status"] == "True" for each in status["conditions"]
    }


def test_a_guest_that_waits_is_explained(bed: Bed) -> None:
    found = run(bed, "explain", "late")
    assert found.exit_code == 1
    assert found.stdout.startswith("lab/late waits: all 4 units of compute-medium are sold.\n")
    # The node that serves the type has no GPU left: another unit alone would not help.
    explanation = told(bed, "explain", "late")["explanation"]
    larger, given_back = (each["words"] for each in explanation["relaxations"])
    assert larger == (
        "1 node fits if it is of type compute-xlarge (cpu 40000m, memory 128Gi, nvidia.com/gpu 2)"
    )
    assert re.fullmatch(r"1 node fits if lab/train-\d gives its unit back", given_back)
    assert run(bed, "explain", "lab/train-1").exit_code == 0


def test_a_forecast_counts_what_is_left_of_the_nodes(bed: Bed) -> None:
    found = {each["type"]: each for each in told(bed, "forecast")["types"]}
    medium = found["compute-medium"]
    assert (medium["sold"], medium["more"]) == (4, {"at_least": 0, "at_most": 0})
    assert (medium["node"], "nvidia.com/gpu" in medium["words"]) == ("eriri", True)
    # Two GPUs of four, and 24 CPUs of 64, are left beside the unit that is held.
    assert found["compute-xlarge"]["more"] == {"at_least": 0, "at_most": 0}
    assert found["compute-large"]["words"] == "no node of the pool serves it"


def test_the_specification_in_force_would_change_nothing(bed: Bed, tmp_path: Path) -> None:
    spec = bed.get(f"{MACHINES}/general-machine")["spec"]
    found = run(bed, "plan", "-f", written(tmp_path, spec, bed))
    assert found.exit_code == 0, found.output
    assert found.stdout.endswith("Nothing would change.\n")


def test_a_change_does_what_its_plan_said(bed: Bed, tmp_path: Path) -> None:
    spec = example_spec()
    spec["nodePool"][1]["mode"] = "ready"
    spec["machineTypes"][0]["available"] = 6
    before = bed.get(f"{MACHINES}/general-machine")
    plan = told(bed, "plan", "-f", written(tmp_path, spec, bed))
    assert (plan["accepted"], plan["fits"]) == (True, True)
    assert [each["pod"] for each in plan["guests"]] == [f"lab/{name}" for name in GUESTS]
    assert [(each["pod"], each["node"]) for each in plan["sold"]] == [("lab/late", "utaha")]
    (marks,) = plan["nodes"]
    assert marks["name"] == "utaha"
    assert marks["added"] == ["label imperator.tenzen-y.io/node-pool=ready"]
    assert bed.get(f"{MACHINES}/general-machine")["spec"] == before["spec"], "nothing is written"
    try:
        bed.edit_machine("general-machine", lambda found: found.update(spec))
        bed.await_usage("compute-medium", (6, 1, 5, 0))
        assert bed.pods()["late"]["spec"]["nodeName"] == "utaha"
        replicas = [
            field
            for each in plan["objects"]
            for field in each["fields"]
            if field.startswith("spec.replicas")
        ]
        assert replicas == ["spec.replicas: 0 -> 1"]
    finally:
        bed.drop_pod("late")
        bed.edit_machine("general-machine", lambda found: found.update(example_spec()))
        bed.await_usage("compute-medium", (4, 0, 4, 0))
        bed.create_guest("late", "compute-medium")
        bed.await_usage("compute-medium", (4, 0, 4, 1))


def test_a_buyer_sees_what_is_sold(bed: Bed) -> None:
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "buyers"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "dovetail-machines-view",
        },
        "subjects": [{"kind": "User", "name": "ada", "apiGroup": "rbac.authorization.k8s.io"}],
    }
    bed.cluster.apply(binding)
    ada = bed.cluster.user("ada")
    found = run(bed, "list", kubeconfig=ada)
    assert found.exit_code == 0, found.output
    assert "lab/late" in found.stdout
    assert run(bed, "explain", "late", kubeconfig=ada).exit_code == 5
