"""Who the operator is: the policies believe the one that runs, and nobody beside it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dovetail.machines.names import OPERATOR
from tests.kube.machines.bed import PODS, Bed, machine_bed, simple_spec
from tests.support.kube.cluster import node_object

ACCOUNT = "/api/v1/namespaces/dovetail/serviceaccounts/dovetail-operator"


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with machine_bed(tmp_path_factory.mktemp("identity"), operator=False) as running:
        running.cluster.apply(node_object("n0", cpu="8", memory="64Gi"))
        running.create_machine(simple_spec(["n0"], 2), "pool")
        yield running


def noted(bed: Bed) -> str | None:
    annotations = bed.get(ACCOUNT)["metadata"].get("annotations", {})
    found: str | None = annotations.get(OPERATOR)
    return found


def test_an_operator_that_runs_as_somebody_else_and_then_as_its_account(bed: Bed) -> None:
    account, bed.kubeconfig = bed.kubeconfig, bed.cluster.user("jane", ("system:masters",))
    bed.start_operator()
    bed.await_ready("pool")
    assert noted(bed) == "jane"
    bed.create_guest("a", "small", group="pool")
    bed.await_that(lambda: bed.running() == ["a"], "guest")
    bed.stop_operators()
    bed.kubeconfig = account
    bed.start_operator()
    bed.create_guest("b", "small", group="pool")
    bed.await_that(lambda: bed.running() == ["a", "b"], "guest")
    assert noted(bed) is None


def test_nobody_else_lifts_the_gate_not_even_an_administrator(bed: Bed) -> None:
    bed.create_guest("waits", "small", group="pool")
    gate = {"spec": {"schedulingGates": None}}
    status, answer = bed.cluster.request("PATCH", f"{PODS.format('lab')}/waits", gate)
    assert status == 422, answer
    assert b"is lifted by the operator" in answer
