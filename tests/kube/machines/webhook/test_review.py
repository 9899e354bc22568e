"""Reviews: what becomes of guests and Machines that are about to be written."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
import pytest

from dovetail.kube.machines.state import MachineState
from dovetail.kube.machines.webhook.app import answer
from dovetail.kube.machines.webhook.review import Reviewer
from dovetail.kube.machines.webhook.wire import AdmissionRequest
from dovetail.kube.runtime.serving import NotUnderstood
from dovetail.machines.injection import inject
from dovetail.machines.names import (
    CREATOR,
    INJECTING_CONTAINER,
    MACHINE_GROUP,
    MACHINE_TYPE,
    POD_ROLE,
    UNIT_GATE,
)
from dovetail.machines.shapes import shapes_of
from dovetail.podfit.objects import Pod
from tests.kube.machines.webhook.observed import LAB, SHELF, accept, pod, state, written
from tests.machines.building import changed, machine
from tests.machines.test_injection import patched

USER = "mei"


async def reviewed(
    found: MachineState,
    path: str,
    new: dict[str, Any] | None,
    old: dict[str, Any] | None = None,
    **asked: Any,
) -> Any:
    """The response on the wire, to a question on the wire."""
    request = {
        "uid": "705ab4f5",
        "operation": "CREATE" if old is None else "UPDATE",
        "namespace": "team",
        "userInfo": {"username": USER, "groups": ["researchers"]},
        "object": new,
        "oldObject": old,
        "options": {"kind": "CreateOptions"},
        **asked,
    }
    question = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    reviewer = Reviewer(found)
    review = reviewer.guest if path == "guests" else reviewer.machine
    said = msgspec.json.decode(await answer("any", review)(msgspec.json.encode(question)))
    assert (said["apiVersion"], said["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert said["response"]["uid"] == "705ab4f5"
    return said["response"]


async def guest_response(given: dict[str, Any], **asked: Any) -> Any:
    return await reviewed(state(), "guests", given, **asked)


def after(given: dict[str, Any], response: Any) -> Any:
    """The pod as the API server has it after the patch of the response."""
    if "patch" not in response:
        return given
    assert response["patchType"] == "JSONPatch"
    return patched(given, msgspec.json.decode(base64.b64decode(response["patch"])))


async def admitted(given: dict[str, Any], **asked: Any) -> dict[str, Any]:
    response = await guest_response(given, **asked)
    assert response["allowed"], response
    made: dict[str, Any] = after(given, response)
    return made


async def refusal(given: dict[str, Any], **asked: Any) -> Any:
    response = await guest_response(given, **asked)
    assert not response["allowed"]
    assert "patch" not in response
    return response["status"]


# -- guests --------------------------------------------------------------------------------------


async def test_a_guest_becomes_one_unit_of_its_type() -> None:
    given = pod()
    shape = shapes_of(machine(LAB).spec)["whole"]
    made = await admitted(given)
    assert made == inject(given, shape, "lab", USER)
    assert made["spec"]["schedulingGates"] == [{"name": UNIT_GATE}]
    assert made["metadata"]["annotations"] == {CREATOR: USER}


async def test_the_creator_is_who_asks_whatever_the_pod_says() -> None:
    given = pod()
    given["metadata"]["annotations"] = {CREATOR: "somebody else", "kept": "as it is"}
    made = await admitted(given, userInfo={"username": "system:serviceaccount:kube-system:job"})
    assert made["metadata"]["annotations"] == {
        CREATOR: "system:serviceaccount:kube-system:job",
        "kept": "as it is",
    }


async def test_a_second_invocation_changes_nothing() -> None:
    once = await admitted(pod())
    assert await guest_response(once) == {"uid": "705ab4f5", "allowed": True}


async def test_a_dry_run_is_answered_alike_and_nothing_is_taken() -> None:
    found = state()
    wet = await reviewed(found, "guests", pod(), dryRun=False)
    for _ in range(3):
        assert await reviewed(found, "guests", pod(), dryRun=True) == wet


@pytest.mark.parametrize(
    ("given", "field", "message"),
    [
        (pod("club"), f"metadata.labels[{MACHINE_GROUP}]", "there is no Machine of group 'club'"),
        (
            pod("lab", "huge"),
            f"metadata.labels[{MACHINE_TYPE}]",
            "there is no type 'huge' in group 'lab': it has whole, other",
        ),
        (
            pod(nodeName="one"),
            "spec.nodeName",
            "a guest goes where its unit is: leave it out",
        ),
    ],
    ids=["unknown group", "unknown type", "node chosen"],
)
async def test_what_is_wrong_is_told_with_its_field(
    given: dict[str, Any], field: str, message: str
) -> None:
    status = await refusal(given)
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"] == f"{field}: {message}"
    cause = {"field": field, "message": message, "reason": "FieldValueInvalid"}
    assert status["details"] == {"kind": "Pod", "name": "train-", "causes": [cause]}


async def test_what_injection_cannot_do_is_refused_with_its_words() -> None:
    named = pod()
    named["metadata"]["labels"][INJECTING_CONTAINER] = "trainer"
    assert "the pod has no container 'trainer'" in (await refusal(named))["message"]
    requests = {"requests": {"cpu": "8"}}
    proxy = {"name": "proxy", "image": "any", "resources": requests}
    crowded = pod(containers=[{"name": "main", "image": "any"}, proxy])
    assert "nothing is left of it for container main" in (await refusal(crowded))["message"]
    large = pod(initContainers=[{**proxy, "resources": {"requests": {"cpu": "9"}}}])
    assert "less than init container proxy 9" in (await refusal(large))["message"]


async def test_a_group_whose_machine_is_not_accepted_sells_nothing() -> None:
    found = state()
    found.on_machine(None, machine(SHELF, "pending", "pending", uid="uid-pending"))
    response = await reviewed(found, "guests", pod("pending", "tiny"))
    message = response["status"]["message"]
    assert message.endswith("Machine pending, whose group 'pending' is, is not accepted")


async def test_a_machine_that_is_being_deleted_sells_nothing() -> None:
    found = state()
    there = found.machines["shelf"]
    meta = msgspec.structs.replace(there.metadata, deletion_timestamp="2026-11-16T12:00:00Z")
    found.on_machine(there, msgspec.structs.replace(there, metadata=meta))
    response = await reviewed(found, "guests", pod("shelf", "tiny"))
    assert "there is no Machine of group 'shelf'" in response["status"]["message"]


async def test_what_was_accepted_last_stays_in_force() -> None:
    found = state()
    there = found.machines["lab"]
    newer = machine(
        changed({"machineTypes[0].spec.cpu": 4}, LAB), "lab", "lab", uid="uid-lab", generation=2
    )
    found.on_machine(there, newer)
    given = pod()
    made = after(given, await reviewed(found, "guests", given))
    assert made["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "8"
    found.accepted.accept(newer)
    made = after(given, await reviewed(found, "guests", given))
    assert made["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "4"


def sold(found: MachineState, kind: str) -> None:
    body = pod("lab", kind, nodeName="one")
    body["metadata"] |= {"name": "first", "namespace": "team", "uid": "first"}
    found.on_pod(None, msgspec.convert(body, Pod))


async def test_a_sold_out_type_refuses_or_has_guests_wait_as_it_says() -> None:
    found = state()
    sold(found, "whole")
    refused = await reviewed(found, "guests", pod("lab", "whole"))
    assert refused["status"] == {
        "code": 403,
        "reason": "Forbidden",
        "message": "SoldOut: the only unit of whole is sold",
    }
    sold(found, "other")
    assert (await reviewed(found, "guests", pod("lab", "other")))["allowed"]


async def test_what_is_held_for_a_window_is_refused_by_the_clock() -> None:
    window = {
        "name": "lecture",
        "start": "2026-11-16T12:00:00Z",
        "duration": "1h",
        "units": 1,
        "buyers": {"namespaces": ["course"]},
    }
    found = state()
    spec = changed({"machineTypes[0].windows": [window]}, LAB)
    accept(found, machine(spec, "lab", "lab", uid="uid-lab", generation=2))
    asked = AdmissionRequest(uid="any", operation="CREATE", namespace="team", object=pod())
    for hour, code in ((11, None), (12, 403), (13, None)):
        now = partial(datetime, 2026, 11, 16, hour, tzinfo=UTC)
        response = Reviewer(found, now).guest(asked)
        assert (response.status.code if response.status else None) == code


@pytest.mark.parametrize(
    "asked",
    [{"operation": "UPDATE"}, {"subResource": "ephemeralcontainers"}, {"namespace": "dovetail"}],
    ids=["a change", "a part", "the operator's namespace"],
)
async def test_what_is_none_of_its_business_is_let_through(asked: dict[str, Any]) -> None:
    given = pod("unknown", "unheard of")
    assert await guest_response(given, **asked) == {"uid": "705ab4f5", "allowed": True}


@pytest.mark.parametrize("label", [MACHINE_GROUP, MACHINE_TYPE, POD_ROLE])
async def test_a_pod_that_lacks_one_of_the_labels_is_no_guest(label: str) -> None:
    given = pod()
    del given["metadata"]["labels"][label]
    assert await guest_response(given) == {"uid": "705ab4f5", "allowed": True}


async def test_what_is_no_review_is_not_understood() -> None:
    asking = answer("any", Reviewer(state()).guest)
    for body in (b"", b"{}", b'{"request": {"uid": 5}}', b"[]"):
        with pytest.raises(NotUnderstood):
            await asking(body)


# -- Machines ------------------------------------------------------------------------------------


async def machine_response(
    new: dict[str, Any], old: dict[str, Any] | None = None, found: MachineState | None = None
) -> Any:
    return await reviewed(found or state(), "machines", new, old, namespace="")


async def test_a_machine_is_refused_with_the_paths_of_all_that_is_wrong() -> None:
    wrong = {
        "nodePool": [
            {"name": "two", "machineType": [{"name": "new"}]},
            {"name": "nowhere", "machineType": [{"name": "old"}]},
        ],
        "machineTypes": [{"name": "new", "spec": {"cpu": 1, "memory": "1Gi"}, "available": 1}],
    }
    response = await machine_response(written(wrong, "fresh"))
    assert not response["allowed"]
    status = response["status"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["details"]["name"] == "fresh"
    causes = {each["field"]: each["message"] for each in status["details"]["causes"]}
    assert causes["spec.nodePool[0].name"] == "node 'two' belongs to Machine shelf"
    assert causes["spec.nodePool[1].name"] == "there is no node 'nowhere'"
    assert "spec.nodePool[1].machineType[0].name" in causes
    for field, message in causes.items():
        assert f"{field}: {message}" in status["message"]


async def test_a_machine_that_is_right_is_let_in() -> None:
    right = changed({"nodePool[0].name": "three"}, SHELF)
    response = await machine_response(written(right, "fresh"))
    assert response == {"uid": "705ab4f5", "allowed": True}


async def test_a_shape_cannot_change_while_pods_have_it_also_where_the_ledger_is_not_read() -> None:
    found = state()
    old = written(LAB, uid="uid-lab")
    new = written(changed({"machineTypes[0].spec.cpu": 4}, LAB), uid="uid-lab")
    assert (await machine_response(new, old, found))["allowed"]
    sold(found, "whole")
    status = (await machine_response(new, old, found))["status"]
    assert status["message"].startswith("spec.machineTypes[0].spec: the shape cannot change")
    assert "team/first" in status["message"]


async def test_a_group_cannot_change_while_units_are_sold() -> None:
    found = state()
    sold(found, "whole")
    old, new = written(LAB, uid="uid-lab"), written(LAB, uid="uid-lab")
    new["metadata"]["labels"] = {MACHINE_GROUP: "club"}
    status = (await machine_response(new, old, found))["status"]
    assert "the group cannot change from 'lab' while units are sold" in status["message"]


async def test_what_is_wrong_already_is_in_nobodys_way() -> None:
    """A node that vanished must not keep anybody from writing labels, finalizers or a new type."""
    found = state()
    found.on_node(found.nodes["one"], None)
    old = written(LAB, uid="uid-lab")
    labelled = written(LAB, uid="uid-lab")
    labelled["metadata"] |= {"annotations": {"note": "hello"}, "finalizers": []}
    assert (await machine_response(labelled, old, found))["allowed"]
    more = written(changed({"machineTypes[1].available": 5}, LAB), uid="uid-lab")
    assert (await machine_response(more, old, found))["allowed"]


async def test_what_is_being_deleted_is_never_held_up() -> None:
    broken = changed({"nodePool[0].name": "nowhere"}, LAB)
    going = {"uid": "uid-lab", "deletionTimestamp": "2026-11-16T12:00:00Z"}
    old = written(LAB, **going, finalizers=["some.one/else"])
    assert (await machine_response(written(broken, **going), old))["allowed"]


async def test_a_machine_that_was_made_anew_is_another() -> None:
    """What was accepted under its name before excuses nothing."""
    found = state()
    accept(found, machine(changed({"nodePool[0].name": "gone"}, LAB), "old", "old", uid="first"))
    broken = changed({"nodePool[0].name": "gone"}, LAB)
    response = await machine_response(written(broken, "old", uid="second"), None, found)
    assert "there is no node 'gone'" in response["status"]["message"]
