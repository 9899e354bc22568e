"""What callers may do, by rule set."""

from __future__ import annotations

import pytest

from dovetail.rest.server.policy import RULE_SETS
from tests.rest.conftest import Make


@pytest.mark.parametrize(
    ("policy", "roles", "status"),
    [
        ("legacy", "admin", 204),
        ("legacy", "service", 403),
        ("secure", "admin", 403),
        ("secure", "service", 204),
        ("open", "nobody", 204),
    ],
)
def test_reshaping_by_rule_set(serve: Make, policy: str, roles: str, status: int) -> None:
    client = serve("open")
    uuid = client.call("POST", "/resource_providers", {"name": "host"}).json()["uuid"]
    strict = serve(policy)
    body = {
        "inventories": {uuid: {"resource_provider_generation": 0, "inventories": {}}},
        "allocations": {},
    }
    assert strict.call("POST", "/reshaper", body, x_roles=roles).status_code == status


@pytest.mark.parametrize(
    ("policy", "roles", "allowed"),
    [
        ("legacy", "admin", True),
        ("legacy", "service", False),
        ("secure", "admin", True),
        ("secure", "service", True),
        ("secure", "reader", False),
        ("open", "nobody", True),
    ],
)
def test_attributes_and_classes_by_rule_set(
    serve: Make, policy: str, roles: str, allowed: bool
) -> None:
    uuid = serve("open").call("POST", "/resource_providers", {"name": "host"}).json()["uuid"]
    marked = {"attributes": {"a": "1"}, "resource_provider_generation": 0}
    attributes, one = f"/dovetail/v1/providers/{uuid}/attributes", "/dovetail/v1/classes/one"
    strict = serve(policy)
    for method, path, body, status in (
        ("PUT", attributes, marked, 200),
        ("GET", attributes, None, 200),
        ("PUT", one, {"spec": {"members": [{"class": "other"}]}}, 201),
        ("GET", one, None, 200),
        ("GET", "/dovetail/v1/classes", None, 200),
        ("GET", "/dovetail/v1/devices", None, 200),
        ("DELETE", one, None, 204),
    ):
        reply = strict.call(method, path, body, x_roles=roles)
        assert reply.status_code == (status if allowed else 403), (method, path, reply.text)


def test_every_rule_set_is_named() -> None:
    assert set(RULE_SETS) == {"legacy", "secure", "open"}
