"""The operator as its manifest has it: with the rights given there, and no others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from dovetail.cli.run.operator import OPERATOR
from dovetail.kube import manifests
from tests.kube.machines.bed import Bed, machine_bed, simple_spec
from tests.support.kube.cluster import node_object

VIEWS = ("machines.imperator.tenzen-y.io", "machinenodepools.imperator.tenzen-y.io")


def test_the_deployment_sets_what_can_be_set() -> None:
    parts = yaml.safe_load_all(manifests.text(["machines"]))
    (deployment,) = [each for each in parts if each["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    command, *arguments = container["args"]
    assert command == "operator"
    settings = OPERATOR.settings.values()
    assert {each for each in arguments if each.startswith("--")} <= {each.flag for each in settings}
    assert {each["name"] for each in container["env"]} <= {each.variable for each in settings}


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with machine_bed(tmp_path_factory.mktemp("rights")) as running:
        running.cluster.apply(node_object("n0", cpu="8", memory="64Gi"))
        yield running


def test_it_holds_sells_evicts_marks_and_cleans_with_the_rights_of_its_account(bed: Bed) -> None:
    lent = {"maxDuration": "1s", "whenExpired": "evict", "announceBefore": "0s"}
    spec = simple_spec(["n0"], 2, **lent)
    spec["nodePool"][0]["taint"] = True
    bed.create_machine(spec, "small")
    bed.await_ready("small")
    assert bed.marks("n0")[0]
    bed.create_guest("guest", "small", group="small", terminationGracePeriodSeconds=0)
    bed.await_that(lambda: bed.events("UnitSold") == ["guest"], "a sale")
    bed.await_that(lambda: "guest" not in bed.pods(), "the end of the lease")
    bed.edit_machine("small", lambda each: each.update(simple_spec(["n0"], 2, name="other")))
    bed.await_that(lambda: bed.replicas("small", "small") is None, "the other type alone")
    bed.drop_machine("small")
    bed.await_that(lambda: not bed.sleepers() and not bed.marks("n0")[0], "nothing left")
    (operator,) = bed.operators
    assert "forbidden" not in operator.output.lower()


def test_its_pods_and_those_that_hold_stock_keep_to_the_restricted_standard(bed: Bed) -> None:
    """The namespace refuses others: what is installed is taken as a dry run."""
    label = "pod-security.kubernetes.io/enforce"
    namespace = bed.get("/api/v1/namespaces/dovetail")
    assert namespace["metadata"]["labels"][label] == "restricted"
    applying = ("apply", "--server-side", "--dry-run=server", "-f", "-")
    said = bed.cluster.kubectl(*applying, given=manifests.text(["machines"]), check=False)
    assert "deployment.apps/dovetail-operator serverside-applied" in said
    assert "violate" not in said


def test_buyers_see_what_is_sold_and_change_nothing(bed: Bed) -> None:
    binding = ("create", "clusterrolebinding", "buyers", "--clusterrole=dovetail-machines-view")
    bed.cluster.kubectl(*binding, "--group=buyers")

    def may(verb: str, kind: str) -> bool:
        asking = ("auth", "can-i", verb, kind, "--as=alice", "--as-group=buyers")
        return bed.cluster.kubectl(*asking, check=False).startswith("yes")

    bed.await_that(lambda: all(may("list", kind) for kind in VIEWS), "rights")
    assert not any(may(verb, kind) for verb in ("create", "patch", "delete") for kind in VIEWS)
    assert not may("list", "pods")


def test_whoever_may_view_everything_views_machines() -> None:
    """By a controller that joins roles with this label."""
    parts = yaml.safe_load_all(manifests.text(["machines"]))
    (view,) = [each for each in parts if each["metadata"]["name"] == "dovetail-machines-view"]
    assert view["metadata"]["labels"] == {"rbac.authorization.k8s.io/aggregate-to-view": "true"}
