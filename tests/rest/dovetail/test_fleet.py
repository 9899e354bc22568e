"""Bulk loading: everything or nothing, with a precise complaint."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.rest.client import Client
from tests.rest.fleets import NDJSON, load, numa_hosts, tree, uid


def send(client: Client, *lines: Any) -> Any:
    document = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return client.call("POST", "/dovetail/v1/fleet", document.encode(), content_type=NDJSON)


def test_a_forest_and_its_consumers(client: Client) -> None:
    consumer = {
        "consumer": uid("vm"),
        "project_id": "blue",
        "user_id": "me",
        "consumer_type": "INSTANCE",
        "allocations": {"h0n0": {"VCPU": 2, "MEMORY_MB": 512}, uid("h0"): {"DISK_GB": 10}},
    }
    reply = send(client, consumer, *numa_hosts(2))
    assert reply.json() == {"providers": 22, "consumers": 1}
    held = client.get(f"/allocations/{uid('vm')}").json()
    assert held["allocations"][uid("h0n0")]["resources"] == {"VCPU": 2, "MEMORY_MB": 512}
    assert held["consumer_type"] == "INSTANCE"
    assert client.get(f"/resource_providers/{uid('h0')}/usages").json()["usages"] == {"DISK_GB": 10}
    found = client.get("/allocation_candidates?resources_C=VCPU:7").json()
    assert len(found["allocation_requests"]) == 3


def test_loading_beside_what_is_there(client: Client) -> None:
    load(client, tree("one"))
    load(client, tree("two", tree("child", inventories={"CUSTOM_THING": 3})))
    names = [p["name"] for p in client.get("/resource_providers").json()["resource_providers"]]
    assert names == ["one", "two", "child"]
    made = client.call("POST", "/resource_providers", {"name": "three"})
    assert made.status_code == 200


GOOD = {"name": "good", "inventories": {"VCPU": 4}}


@pytest.mark.parametrize(
    ("line", "status", "complaint"),
    [
        ("{", 400, "line 2"),
        ('{"name": "x", "colour": "red"}', 400, "colour"),
        ('{"inventories": {}}', 400, "a provider needs a name"),
        ('{"name": "x", "inventories": {"VCPU": 0}}', 400, "$.inventories"),
        ('{"name": "x", "inventories": {"vcpu": 1}}', 400, "line 2"),
        ('{"name": "x", "inventories": {"NO_SUCH": 1}}', 400, "No such resource class NO_SUCH"),
        ('{"name": "x", "traits": ["NO_SUCH"]}', 400, "No such trait(s): NO_SUCH"),
        ('{"name": "x\\u0000"}', 400, "line 2: NUL characters are not allowed"),
        ('{"name": "x", "attributes": {"a": "\\u0000"}}', 400, "line 2: NUL characters"),
        ('{"name": "x", "attributes": {"a": 1}}', 400, "$.attributes"),
        ('{"name": "good"}', 400, "good stands in this fleet already"),
        ('{"name": "taken"}', 409, "name: taken already exists"),
        ('{"name": "x", "uuid": "y"}', 400, "'y' is no UUID"),
        ('{"name": "x", "children": [{"name": "x"}]}', 400, "line 2, x > x: x stands"),
        (
            '{"name": "x", "inventories": {"VCPU": {"total": 1, "reserved": 2}}}',
            400,
            "line 2, x: VCPU: reserved is greater than total",
        ),
        (
            '{{"consumer": "{}", "allocations": {{"good": {{"VCPU": 5}}}}}}'.format(uid("c")),
            400,
            "5 in use would exceed the capacity of 4",
        ),
        (
            '{{"consumer": "{}", "allocations": {{"nowhere": {{"VCPU": 5}}}}}}'.format(uid("c")),
            400,
            "no provider 'nowhere' stands in this fleet",
        ),
        (
            '{{"consumer": "{}", "allocations": {{}}}}'.format(uid("c")),
            400,
            "at least one resource",
        ),
    ],
)
def test_one_bad_line_spoils_everything(
    client: Client, line: str, status: int, complaint: str
) -> None:
    load(client, tree("taken"))
    reply = send(client, GOOD, line)
    assert reply.status_code == status
    assert complaint in reply.json()["detail"]
    assert len(client.get("/resource_providers").json()["resource_providers"]) == 1


def test_the_media_type_has_to_be_right(client: Client) -> None:
    reply = client.call("POST", "/dovetail/v1/fleet", [])
    assert reply.status_code == 415
    assert "application/x-ndjson" in reply.json()["detail"]
