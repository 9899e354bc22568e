"""An answer is never older than the last write that was acknowledged before it was asked for."""

from __future__ import annotations

from tests.rest.conftest import Make
from tests.rest.fleets import load, tree, uid

QUERY = "/allocation_candidates?resources=VCPU:1"


def test_each_write_shows_in_the_next_answer_of_every_replica(serve: Make) -> None:
    writer, reader = serve(), serve()
    reader.get(QUERY)
    load(writer, tree("host", inventories={"VCPU": 2}))
    path = f"/resource_providers/{uid('host')}"

    def found() -> int:
        return len(reader.get(QUERY).json()["allocation_requests"])

    assert found() == 1
    claim = {
        "allocations": {uid("host"): {"resources": {"VCPU": 2}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    assert writer.call("PUT", f"/allocations/{uid('vm')}", claim).status_code == 204
    assert found() == 0
    assert writer.call("DELETE", f"/allocations/{uid('vm')}").status_code == 204
    assert found() == 1
    trait = {"traits": ["HW_NUMA_ROOT"], "resource_provider_generation": 1}
    assert writer.call("PUT", f"{path}/traits", trait).status_code == 200
    summaries = reader.get(QUERY).json()["provider_summaries"]
    assert summaries[uid("host")]["traits"] == ["HW_NUMA_ROOT"]
    assert writer.call("DELETE", path).status_code == 204
    assert found() == 0


def test_a_renamed_class_is_known_by_its_new_name(serve: Make) -> None:
    client = serve()
    load(client, tree("host", inventories={"CUSTOM_OLD": 2}))
    client.get("/allocation_candidates?resources=CUSTOM_OLD:1")
    renamed = client.call(
        "PUT", "/resource_classes/CUSTOM_OLD", {"name": "CUSTOM_NEW"}, version="1.2"
    )
    assert renamed.status_code == 200
    reply = client.get("/allocation_candidates?resources=CUSTOM_NEW:1").json()
    assert reply["provider_summaries"][uid("host")]["resources"] == {
        "CUSTOM_NEW": {"capacity": 2, "used": 0}
    }


def test_a_class_that_is_no_more_leaves_no_trace(serve: Make) -> None:
    client = serve()
    load(client, tree("host", inventories={"VCPU": 2, "CUSTOM_GONE": 1}))
    client.get(QUERY)
    path = f"/resource_providers/{uid('host')}/inventories/CUSTOM_GONE"
    assert client.call("DELETE", path).status_code == 204
    assert client.call("DELETE", "/resource_classes/CUSTOM_GONE").status_code == 204
    summaries = client.get(QUERY).json()["provider_summaries"]
    assert summaries[uid("host")]["resources"] == {"VCPU": {"capacity": 2, "used": 0}}
