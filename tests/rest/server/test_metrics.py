"""GET /metrics: what is counted, who may see it, and that labels cannot run away."""

from __future__ import annotations

import uuid
from typing import Any, get_args

import pytest
from prometheus_client.parser import text_string_to_metric_families

from dovetail.rest.server.metrics import METHODS
from dovetail.telemetry.phases import PhaseName
from tests.rest.client import Client
from tests.rest.conftest import Make

QUERY = "/allocation_candidates?resources=VCPU:1"


def sample(client: Client, name: str, **labels: str) -> float:
    """The value of one time series; 0 if it is not there."""
    for family in text_string_to_metric_families(client.get("/metrics").text):
        for found in family.samples:
            if found.name == f"dovetail_{name}" and labels.items() <= found.labels.items():
                return float(found.value)
    return 0.0


def label_values(client: Client) -> set[str]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {
        value for family in families for found in family.samples for value in found.labels.values()
    }


def host(client: Client, vcpus: int = 8) -> str:
    uuid_ = str(uuid.uuid4())
    client.call("POST", "/resource_providers", {"name": f"host-{uuid_}", "uuid": uuid_})
    stock = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": vcpus}}}
    assert client.call("PUT", f"/resource_providers/{uuid_}/inventories", stock).status_code == 200
    return uuid_


def claim(client: Client, provider: str, amount: int, generation: int | None = None) -> int:
    body: dict[str, Any] = {
        "allocations": {provider: {"resources": {"VCPU": amount}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "INSTANCE",
        "consumer_generation": generation,
    }
    return client.call("PUT", f"/allocations/{uuid.uuid4()}", body).status_code


def test_requests_are_counted_by_route_and_class_of_status(client: Client) -> None:
    def counted(status: str) -> float:
        labels = {"method": "GET", "route": "/resource_providers/{uuid}", "status": status}
        return sample(client, "request_duration_seconds_count", **labels)

    before = counted("2xx"), counted("4xx")
    client.get(f"/resource_providers/{host(client)}")
    client.get(f"/resource_providers/{uuid.uuid4()}")
    assert (counted("2xx"), counted("4xx")) == (before[0] + 1, before[1] + 1)


@pytest.mark.parametrize(
    ("amount", "generation", "status", "outcome"),
    [(1, None, 204, "granted"), (9, None, 409, "refused"), (1, 7, 409, "conflict")],
)
def test_claims_are_counted_by_what_came_of_them(
    client: Client, amount: int, generation: int | None, status: int, outcome: str
) -> None:
    provider = host(client)
    before = sample(client, "claims_total", outcome=outcome)
    assert claim(client, provider, amount, generation) == status
    assert sample(client, "claims_total", outcome=outcome) == before + 1


def test_what_is_no_claim_counts_as_an_invalid_one(client: Client) -> None:
    before = sample(client, "claims_total", outcome="invalid")
    assert client.call("PUT", f"/allocations/{uuid.uuid4()}", {}).status_code == 400
    assert client.call("POST", "/dovetail/v1/claims", {"query": "rank=x"}).status_code == 400
    assert client.call("POST", "/allocations", {}, x_auth_token="reader").status_code == 403
    assert sample(client, "claims_total", outcome="invalid") == before + 3


def test_a_conflict_is_a_refusal_with_its_route(client: Client) -> None:
    labels = {"route": "/allocations/{consumer_uuid}", "status": "409"}
    before = sample(client, "refused_requests_total", **labels)
    claim(client, host(client), 9)
    assert sample(client, "refused_requests_total", **labels) == before + 1


def test_a_search_is_told_by_phase_and_size(client: Client) -> None:
    host(client)
    phases = ("parse", "snapshot", "search", "encode", "write")
    before = {name: sample(client, "phase_duration_seconds_count", phase=name) for name in phases}
    candidates = sample(client, "candidates_returned_sum")
    assert client.get(QUERY).status_code == 200
    for name in phases[:-1]:
        assert sample(client, "phase_duration_seconds_count", phase=name) == before[name] + 1
    assert sample(client, "phase_duration_seconds_count", phase="write") == before["write"]
    assert sample(client, "candidates_returned_sum") == candidates + 1


def test_every_phase_is_told_from_the_start(client: Client) -> None:
    """So that a rate over a phase that nobody has needed yet is 0, not missing."""
    assert set(get_args(PhaseName)) <= label_values(client)


def test_the_snapshot_tells_its_size_and_when_it_was_true(client: Client) -> None:
    host(client)
    client.get(QUERY)
    assert sample(client, "snapshot_rows") == sample(client, "snapshot_trees") == 1
    small = sample(client, "snapshot_bytes")
    earlier = sample(client, "snapshot_checked_timestamp_seconds")
    taken = sample(client, "snapshot_changes_total", kind="trees")
    host(client)
    client.get(QUERY)
    assert sample(client, "snapshot_rows") == 2
    assert sample(client, "snapshot_bytes") > small > 0
    assert sample(client, "snapshot_checked_timestamp_seconds") > earlier > 1.7e9
    assert sample(client, "snapshot_changes_total", kind="trees") == taken + 1


def test_commits_tell_how_many_writes_shared_them(client: Client) -> None:
    before = sample(client, "commit_batch_size_count")
    writes = sample(client, "commit_batch_size_sum")
    claim(client, host(client), 1)
    assert sample(client, "commit_batch_size_count") == before + 3
    assert sample(client, "commit_batch_size_sum") == writes + 3


def test_nothing_a_client_makes_up_becomes_a_label(client: Client) -> None:
    made_up = str(uuid.uuid4())
    client.call("PUT", f"/traits/CUSTOM_{made_up[:8].upper()}")
    client.get(f"/resource_providers/{made_up}")
    client.get(f"/{made_up}")
    client.call(made_up.replace("-", "").upper(), "/resource_providers")
    values = label_values(client)
    assert not [value for value in values if made_up[:8] in value.lower()]
    assert {"none", "other", "/traits/{name}"} <= values
    assert "GET" in METHODS


def test_the_version_is_told(client: Client) -> None:
    assert sample(client, "build_info") == 1


def test_guarded_asks_the_policy(serve: Make) -> None:
    guarded = serve(policy="secure")
    assert guarded.get("/metrics").status_code == 200
    assert guarded.get("/metrics", x_auth_token="somebody").status_code == 403
    assert guarded.get("/metrics", x_auth_token="").status_code == 401


def test_public_answers_everybody_and_off_nobody(serve: Make) -> None:
    answer = serve(policy="secure", metrics="public").get("/metrics", x_auth_token="")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert serve(metrics="off").get("/metrics").status_code == 404
