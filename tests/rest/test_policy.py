"""What callers may do, by rule set."""

from __future__ import annotations

import pytest

from dovetail.rest.policy import RULE_SETS
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


def test_every_rule_set_is_named() -> None:
    assert set(RULE_SETS) == {"legacy", "secure", "open"}
