"""Operators that serve the webhook, on a real cluster without admission policies: guests are made
units, sold, and refused; each replica answers alike; and what happens while none does."""

from __future__ import annotations

import base64
import http.client
import json
import signal
import ssl
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from dovetail.kube import manifests
from dovetail.machines.names import CREATOR, DOMAIN, MACHINE_TYPE, UNIT_GATE
from tests.kube.machines.bed import MACHINES, Bed, machine_bed, simple_spec
from tests.kube.machines.webhook.calling import HOST, NAME, NAMESPACE, documents
from tests.kube.machines.webhook.observed import pod
from tests.support.kube.cluster import node_object
from tests.support.kube.operator import LEASE
from tests.support.processes import Process, reserved_port

NODES = ("n0", "n1")
CREATED, FORBIDDEN, INVALID, FAILED = 201, 403, 422, 500
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/{NAME}"


@pytest.fixture(scope="module")
def ports() -> Iterator[list[int]]:
    with reserved_port() as first, reserved_port() as second:
        yield [first, second]


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory, ports: list[int]) -> Iterator[Bed]:
    """The API server calls the first port."""
    directory = tmp_path_factory.mktemp("operators")
    with machine_bed(directory, operator=False, parts=["machines-crds", "machines"]) as running:
        running.cluster.apply(*(node_object(name, cpu="8", memory="64Gi") for name in NODES))
        running.cluster.apply(*documents(ports[0]))
        running.cluster.make_namespace("apart")
        yield running


def start(bed: Bed, port: int) -> Process:
    return bed.start_operator("--webhook-listen", f"{HOST}:{port}", "--webhook-hosts", HOST)


def asked(bed: Bed, port: int, given: dict[str, Any], authorities: str = "") -> Any:
    """The response of this very replica to the review of a guest; None if it does not answer.

    Its certificate is to be of these authorities, or of those of the Secret.
    """
    kept = bed.get(SECRET).get("data", {}).get("ca.crt", "")
    if not (authorities or kept):
        return None
    trusting = ssl.create_default_context(cadata=authorities or base64.b64decode(kept).decode())
    request = {"uid": "any", "operation": "CREATE", "namespace": "lab", "object": given}
    connection = http.client.HTTPSConnection(HOST, port, context=trusting, timeout=10)
    try:
        connection.request("POST", "/guests", json.dumps({"request": request}))
        return json.loads(connection.getresponse().read())["response"]
    except OSError:
        return None
    finally:
        connection.close()


def answers(bed: Bed, port: int, authorities: str = "") -> bool:
    return asked(bed, port, pod(), authorities) is not None


def refuses(bed: Bed, port: int, group: str) -> bool:
    return not asked(bed, port, guest(group))["allowed"]


def leads(bed: Bed, process: Process) -> bool:
    return f"_{process.pid}_" in (bed.get(LEASE)["spec"].get("holderIdentity") or "")


def guest(group: str) -> dict[str, Any]:
    return pod(group, "small")


def sell(bed: Bed, group: str, available: int, **more: Any) -> None:
    """A Machine that is accepted, by operators whom the API server has begun to call."""
    bed.create_machine(simple_spec(NODES, available, **more), group)
    bed.await_ready(group)
    path = "/api/v1/namespaces/lab/pods?dryRun=All"
    bed.await_that(lambda: bed.create(path, guest(group))[0] == CREATED, "calls")


@pytest.fixture(scope="module")
def replicas(bed: Bed, ports: list[int]) -> list[Process]:
    """Two of them, that answer; one after the other, for the first makes the ledger's tables."""
    found = []
    for port in ports:
        found.append(start(bed, port))
        bed.await_that(partial(answers, bed, port), "answers", 60)
    return found


@pytest.fixture
def operators(bed: Bed, replicas: list[Process]) -> Iterator[list[Process]]:
    """With nothing to sell yet."""
    yield replicas
    for name in bed.pods():
        bed.drop_pod(name)
    for each in bed.get(MACHINES)["items"]:
        bed.drop_machine(each["metadata"]["name"])
    bed.await_that(lambda: not bed.pods() and not bed.sleepers(), "nothing left")


def test_a_guest_is_injected_sold_and_runs_without_any_policy(
    bed: Bed, operators: list[Process]
) -> None:
    sell(bed, "plain", 2)
    status, made = bed.create_guest("first", "small", group="plain")
    assert status == CREATED, made
    assert made["spec"]["schedulingGates"] == [{"name": UNIT_GATE}]
    assert made["metadata"]["annotations"][CREATOR] == "admin"
    bed.await_that(lambda: bed.running() == ["first"], "running guest")
    bed.await_usage("small", (2, 1, 1, 0), "plain")
    status, made = bed.create_guest("left-alone", "small", group="plain", namespace="apart")
    assert status == CREATED, made
    assert "schedulingGates" not in made["spec"]
    bed.drop_pod("left-alone", "apart")


def test_each_replica_refuses_what_is_sold_out_and_sells_again_what_comes_back(
    bed: Bed, operators: list[Process], ports: list[int]
) -> None:
    sell(bed, "scarce", 1, whenSoldOut="refuse")
    assert bed.create_guest("first", "small", group="scarce")[0] == CREATED
    bed.await_that(lambda: bed.running() == ["first"], "running guest")
    status, said = bed.create_guest("second", "small", group="scarce")
    assert status == FORBIDDEN
    assert said["message"].endswith("denied the request: SoldOut: the only unit of small is sold")
    for port in ports:
        bed.await_that(partial(refuses, bed, port, "scarce"), "refusal")
    bed.drop_pod("first")
    bed.await_that(
        lambda: bed.create_guest("third", "small", group="scarce")[0] == CREATED, "free unit"
    )
    bed.await_that(lambda: bed.running() == ["third"], "running guest")


def test_of_20_at_once_for_the_last_unit_one_has_it_and_who_slips_through_is_told(
    bed: Bed, operators: list[Process]
) -> None:
    sell(bed, "last", 1, whenSoldOut="refuse")
    answers = bed.create_guests([f"guest-{n}" for n in range(20)], "small", group="last")
    codes = Counter(status for status, _ in answers)
    assert set(codes) <= {CREATED, FORBIDDEN}
    assert codes[CREATED] >= 1
    slipped = codes[CREATED] - 1
    bed.await_usage("small", (1, 0, 1, slipped), "last")
    assert len(bed.running()) == 1
    reasons = Counter(row["reason"] for row in bed.status("last")["waiting"])
    assert reasons == Counter({"SoldOut": slipped} if slipped else {})


def test_a_machine_is_refused_at_once_with_what_is_wrong(
    bed: Bed, operators: list[Process]
) -> None:
    sell(bed, "right", 1)
    status, said = bed.try_machine(simple_spec(["n1", "nowhere"], 1), "wrong")
    assert status == INVALID
    assert [each["field"] for each in said["details"]["causes"]] == [
        "spec.nodePool[0].name",
        "spec.nodePool[1].name",
    ]
    assert "spec.nodePool[0].name: node 'n1' belongs to Machine right" in said["message"]
    shown = bed.cluster.kubectl(*("label", "machine", "right", "note=hello"), check=False)
    assert "labeled" in shown


def test_without_operators_machines_come_and_go_and_guests_are_not_let_in(
    bed: Bed, operators: list[Process]
) -> None:
    sell(bed, "right", 1)
    for each in operators:
        each.kill()
    status, said = bed.create_guest("early", "small", group="right")
    assert status == FAILED
    assert "failed calling webhook" in said["message"]
    assert bed.create_guest("apart", "small", group="right", namespace="apart")[0] == CREATED
    bed.drop_pod("apart", "apart")
    spec = simple_spec(["nowhere"], 1)
    bed.create_machine(spec, "wrong")
    bed.cluster.kubectl("delete", "machine", "right", "--wait=false")
    for each in operators:
        each.start()
    bed.await_that(lambda: (bed.condition("Accepted", "wrong") or ("",))[0] == "False", "judgement")
    bed.await_that(lambda: bed.get(f"{MACHINES}/right") is None, "deletion")


def test_a_replica_that_comes_back_serves_the_certificate_that_is_there(
    bed: Bed, operators: list[Process], ports: list[int]
) -> None:
    before = bed.get(SECRET)["data"]
    for each in operators:
        each.restart()
    for port in ports:
        bed.await_that(partial(answers, bed, port), "answers")
    assert bed.get(SECRET)["data"] == before


def test_a_replica_that_is_told_to_stop_answers_until_nobody_is_sent_to_it_any_more(
    bed: Bed, operators: list[Process], ports: list[int]
) -> None:
    bed.await_that(lambda: any(leads(bed, each) for each in operators), "leader")
    at = next(n for n, each in enumerate(operators) if leads(bed, each))
    operators[at].send_signal(signal.SIGTERM)
    bed.await_that(lambda: not leads(bed, operators[at]), "lease given back")
    assert answers(bed, ports[at])
    assert operators[at].wait() == 0
    operators[at].start()


def test_a_replica_may_have_its_certificate_from_files(bed: Bed) -> None:
    """As cert-manager has them written: the Secret is none of its business then."""
    cert, key = bed.cluster.authority.issue("webhook")
    before = bed.get(SECRET)
    with reserved_port() as port:
        process = bed.start_operator(
            *("--webhook-listen", f"{HOST}:{port}", "--webhook-certificates", "files"),
            *("--webhook-cert", cert, "--webhook-key", key),
        )
        authority = bed.cluster.authority.certificate.read_text()
        bed.await_that(partial(answers, bed, port, authority), "answers")
        process.kill()
    assert bed.get(SECRET) == before


def test_beside_the_policies_a_guest_is_the_same(bed: Bed, operators: list[Process]) -> None:
    """Both inject, and what one has given the other leaves alone."""
    policies = manifests.text(["machines-injection", "machines-admission", "machines-rules"])
    bed.cluster.kubectl("apply", "--server-side", "-f", "-", given=policies)
    try:
        sell(bed, "plain", 2, whenSoldOut="refuse")
        bed.create_guest("early", "small", group="plain")
        label = ("label", "pod", "early", "-n", "lab", "--overwrite", "--dry-run=server")
        relabel = (*label, f"{MACHINE_TYPE}=other")
        bed.await_that(
            lambda: "stay as they are" in bed.cluster.kubectl(*relabel, check=False), "policies"
        )
        status, made = bed.create_guest("first", "small", group="plain")
        assert status == CREATED, made
        assert [each["name"] for each in made["spec"]["schedulingGates"]] == [UNIT_GATE]
        keys = [each["key"] for each in made["spec"]["tolerations"]]
        assert len([each for each in keys if each.startswith(DOMAIN)]) == 2
        resources = made["spec"]["containers"][0]["resources"]
        assert resources == {kind: {"cpu": "2", "memory": "4Gi"} for kind in resources}
        bed.await_that(lambda: bed.running() == ["early", "first"], "running guests")
        assert bed.create_guest("second", "small", group="plain")[0] == FORBIDDEN
    finally:
        bed.cluster.kubectl("delete", "-f", "-", given=policies)


def test_a_replica_comes_up_while_one_leads_that_knows_of_no_webhook(
    bed: Bed, operators: list[Process], ports: list[int]
) -> None:
    """As in an update that turns the webhook on: the old leader waits for the new replica."""
    bed.stop_operators()
    empty = ("--type=merge", "-p", '{"data": null}')
    bed.cluster.kubectl("patch", "secret", NAME, "-n", NAMESPACE, *empty)
    old = bed.start_operator()
    bed.await_that(lambda: leads(bed, old), "leader")
    start(bed, ports[0])
    bed.await_that(partial(answers, bed, ports[0]), "answers")
    assert leads(bed, old)
