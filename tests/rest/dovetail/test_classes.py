"""Resource classes over HTTP: defined, shown with what there is, asked for, forgotten."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dovetail.core.device import Device
from dovetail.devices.allocation.request import DeviceHolding
from dovetail.ledger import open_ledger
from dovetail.service.device_claims import DeviceLedger
from tests.rest.client import Client
from tests.rest.conftest import Make
from tests.rest.fleets import uid

CLASSES = "/dovetail/v1/classes"


def spec(*expressions: tuple[str, str, str]) -> dict[str, Any]:
    listed = [{"key": k, "operator": o, "values": [v]} for k, o, v in expressions]
    return {"resourceSelector": [{"matchExpressions": listed}]}


LARGE = spec(("Kind", "In", "nvidia-gpu"), ("memory", "GtEq", "30G"))


def define(client: Client, name: str, given: dict[str, Any]) -> Any:
    return client.call("PUT", f"{CLASSES}/{name}", {"spec": given})


@pytest.fixture
def fleet(client: Client, tmp_path: Path) -> Client:
    """Two nodes with devices; a pod holds one of them."""
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db")

    async def publish() -> None:
        devices = DeviceLedger(ledger)
        for node, memory in (("n1", "16G"), ("n2", "80G")):
            kind = {"node": node, "kind": "nvidia-gpu", "properties": {"memory": memory}}
            found = [Device(name=f"gpu{n}", **kind) for n in range(2)]  # type: ignore[arg-type]
            await devices.publish(node, found)
        await devices.claim(uid("pod"), "default", "sa", "n2", [DeviceHolding("gpu0", 1, "large")])

    asyncio.run(publish())
    ledger.close()
    return client


def test_a_class_is_defined_shown_and_forgotten(client: Client) -> None:
    made = define(client, "nvidia.high.mem", LARGE)
    assert made.status_code == 201
    assert made.json()["spec"] == LARGE
    shown = client.get(f"{CLASSES}/nvidia.high.mem").json()
    assert shown == made.json()
    assert client.get(CLASSES).json() == {"classes": [shown]}
    assert client.call("DELETE", f"{CLASSES}/nvidia.high.mem").status_code == 204
    for method in ("GET", "DELETE"):
        gone = client.call(method, f"{CLASSES}/nvidia.high.mem")
        assert (gone.status_code, "'nvidia.high.mem'" in gone.json()["detail"]) == (404, True)


def test_what_a_class_selects_does_not_change(client: Client) -> None:
    define(client, "large", LARGE)
    same = {**LARGE, "singleDevice": False}
    assert define(client, "large", same).status_code == 200, "another way to write the same"
    other = define(client, "large", {**LARGE, "singleDevice": True})
    assert other.status_code == 409
    assert "delete it first" in other.json()["detail"]
    assert client.get(f"{CLASSES}/large").json()["spec"] == LARGE


def test_every_problem_is_told_with_the_path_of_its_field(client: Client) -> None:
    bad = {
        "resourceSelector": [
            {
                "matchExpressions": [
                    {"key": "memory", "operator": "GtEq", "values": ["much"]},
                    {"key": "memory", "operator": "Above", "values": ["1"]},
                ]
            }
        ]
    }
    reply = define(client, "large", bad)
    assert reply.status_code == 400
    at = "spec.resourceSelector[0].matchExpressions"
    paths = [problem["path"] for problem in reply.json()["problems"]]
    assert paths == [f"{at}[0].values[0]", f"{at}[1].operator"]
    assert client.get(CLASSES).json() == {"classes": []}


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"spec": []}', b'{"sepc": {}}', b"{}"])
def test_a_body_that_is_none_is_refused(client: Client, body: bytes) -> None:
    reply = client.call("PUT", f"{CLASSES}/x", body, content_type="application/json")
    assert reply.status_code == 400
    assert client.get(CLASSES).json() == {"classes": []}


def test_units_are_counted_as_the_devices_are(fleet: Client) -> None:
    define(fleet, "large", LARGE)
    define(fleet, "any", spec(("Kind", "In", "nvidia-gpu")))
    define(fleet, "pair", {"members": [{"class": "large", "count": 2}]})
    shown = {each["name"]: each for each in fleet.get(CLASSES).json()["classes"]}
    units = ("allocatable", "requested", "available")
    assert [shown["large"][unit] for unit in units] == [2, 1, 1]
    assert [shown["any"][unit] for unit in units] == [4, 1, 3]
    assert shown["pair"]["available"] == 0


def test_devices_are_listed(fleet: Client) -> None:
    found = fleet.get("/dovetail/v1/devices?node=n2").json()["devices"]
    assert all("origin" not in each for each in found)
    assert [(each["name"], each["used"]) for each in found] == [("gpu0", 1), ("gpu1", 0)]
    assert found[0]["properties"] == {"memory": "80G"}
    assert len(fleet.get("/dovetail/v1/devices").json()["devices"]) == 4
    assert fleet.get("/dovetail/v1/devices?node=n9").json() == {"devices": []}


def test_candidates_may_ask_for_a_class(fleet: Client) -> None:
    define(fleet, "large", LARGE)
    query = "resources_G=CUSTOM_DEVICE:1&class_G=large"
    found = fleet.get(f"/allocation_candidates?{query}").json()["allocation_requests"]
    assert len(found) == 1, "of the two large ones a pod holds one"
    explained = fleet.get(f"/dovetail/v1/explain?{query}&attributes_G=ecc").json()
    assert [step["words"] for step in explained["funnel"][1:]] == [
        "attribute ecc (group _G)",
        "of class large (group _G)",
    ]
    offers = {offer["words"]: offer["query"] for offer in explained["relaxations"]}
    assert offers == {
        "1 host fits if attribute ecc is not required (group _G)": query,
    }
    claimed = fleet.call("POST", "/dovetail/v1/claims", {"query": query})
    assert claimed.status_code == 201
    refused = fleet.call("POST", "/dovetail/v1/claims", {"query": query})
    assert refused.status_code == 409
    whatif = {"query": query, "release": [claimed.json()["consumer"]]}
    told = fleet.call("POST", "/dovetail/v1/whatif", whatif).json()
    assert (told["before"]["hosts"], told["after"]["hosts"]) == (0, 1)


def test_a_class_of_classes_is_no_condition_on_one_provider(fleet: Client) -> None:
    define(fleet, "large", LARGE)
    define(fleet, "pair", {"members": [{"class": "large", "count": 2}]})
    reply = fleet.get("/allocation_candidates?resources_G=CUSTOM_DEVICE:1&class_G=pair")
    assert reply.status_code == 400
    assert "ask for large in groups of their own" in reply.text


def test_another_replica_knows_a_class_as_soon_as_it_is_defined(serve: Make) -> None:
    one, other = serve(), serve()
    query = "/allocation_candidates?resources_G=VCPU:1&class_G=large"
    assert other.get(query).status_code == 400
    define(one, "large", LARGE)
    assert other.get(query).status_code == 200
    one.call("DELETE", f"{CLASSES}/large")
    assert other.get(query).status_code == 400
