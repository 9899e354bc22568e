"""Rows of the table of ambiguities that are about documents, over HTTP, by their numbers."""

from __future__ import annotations

import pytest

from tests.rest.conftest import Make
from tests.rest.intents.client import (
    CONSUMERS,
    CPU,
    INTENTS,
    REQUIREMENTS,
    IntentsClient,
    Json,
    make_consumer,
    make_group,
    named,
)

FLAT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "container": "x"}
LABEL = {"key": "cpu-pstate.turbo", "value": "true"}


def status_and_field(client: IntentsClient, path: str, body: Json) -> tuple[int, str]:
    reply = client.post(path, body)
    return reply.status_code, reply.json().get("field", "")


def test_row_1_paths_with_and_without_v2_lead_to_the_same(serve: Make) -> None:
    http = serve()
    with_it, without = IntentsClient(http), IntentsClient(http, prefix="")
    without.made("projects", named("p"))
    assert with_it.get("projects/p").json() == without.get("projects/p").json()


@pytest.mark.parametrize("word", ["app", "appName", "app-name"])
def test_row_2_the_app_of_an_intent_in_every_spelling(intents: IntentsClient, word: str) -> None:
    make_group(intents)
    assert intents.made(INTENTS, named("i", **{word: "a"}))["spec"] == {"app": "a"}


def test_row_3_consumers_flat_or_in_a_level_of_their_own(intents: IntentsClient) -> None:
    make_group(intents)
    intents.made(INTENTS, named("i", app="a"))
    nested = {key: value for key, value in FLAT.items() if key != "container"}
    assert intents.made(CONSUMERS, named("flat", **FLAT))["spec"] == FLAT
    inner = {"consumer": {**nested, "container-name": "x"}}
    assert intents.made(CONSUMERS, named("nested", **inner))["spec"] == FLAT


def test_row_5_requirements_flat_or_under_resource(intents: IntentsClient) -> None:
    make_consumer(intents)
    flat = {"allocatable": True, "name": "cpu", "requests": 1}
    assert intents.made(REQUIREMENTS, named("flat", **flat))["spec"] == CPU
    assert intents.made(REQUIREMENTS, named("nested", **CPU))["spec"] == CPU


@pytest.mark.parametrize("key", ["name", "key"])
def test_row_6_the_key_of_a_label_by_both_words(intents: IntentsClient, key: str) -> None:
    make_consumer(intents)
    resource = {key: LABEL["key"], "value": LABEL["value"]}
    made = intents.made(REQUIREMENTS, named("r", allocatable=False, resource=resource))
    assert made["spec"]["resource"] == LABEL


def test_row_7_limits_without_requests_are_taken_and_answered_as_written(
    intents: IntentsClient,
) -> None:
    make_consumer(intents)
    gpu = {"name": "nvidia.com/gpu", "limits": 1}
    made = intents.made(REQUIREMENTS, named("r", allocatable=True, resource=gpu))
    assert made["spec"]["resource"] == gpu


@pytest.mark.parametrize(("weight", "status"), [(0, 400), (1, 201), (10, 201), (11, 400)])
def test_row_8_weights_are_1_to_10(intents: IntentsClient, weight: int, status: int) -> None:
    make_consumer(intents)
    body = named("r", **CPU, mandatory=False, weight=weight)
    field = "spec.weight" if status == 400 else ""
    assert status_and_field(intents, REQUIREMENTS, body) == (status, field)


def test_row_9_allocatable_has_to_be_said(intents: IntentsClient) -> None:
    make_consumer(intents)
    body = named("r", resource=CPU["resource"])
    assert status_and_field(intents, REQUIREMENTS, body) == (400, "spec.allocatable")


def test_row_10_an_intent_shows_its_consumers(intents: IntentsClient) -> None:
    make_consumer(intents)
    [consumer] = intents.get(f"{INTENTS}/i").json()["spec"]["resourceConsumers"]
    assert consumer["metadata"] == {"name": "k"}
    [listed] = intents.get(INTENTS).json()
    assert listed["spec"]["resourceConsumers"] == [consumer]


def test_row_11_what_has_children_is_not_replaced_and_what_is_not_there_not_made(
    intents: IntentsClient,
) -> None:
    make_consumer(intents)
    assert intents.put(f"{INTENTS}/i", named("i", app="b")).status_code == 409
    assert intents.put(f"{INTENTS}/j", named("j", app="b")).status_code == 404
    assert intents.get(f"{INTENTS}/i").json()["spec"]["app"] == "a"


def test_row_12_queries_find_one_and_collections_go_as_a_whole(intents: IntentsClient) -> None:
    make_consumer(intents)
    intents.made(INTENTS, named("free", app="a"))
    assert intents.get(f"{INTENTS}?intent=free").json()["metadata"] == {"name": "free"}
    assert intents.get(f"{INTENTS}?intent=none").status_code == 404
    assert intents.get(f"{CONSUMERS}?consumer=none").status_code == 404
    assert intents.get(f"{REQUIREMENTS}?resource=none").status_code == 404
    assert intents.delete(INTENTS).status_code == 409
    assert len(intents.get(INTENTS).json()) == 2
    assert intents.delete(f"{INTENTS}?intent=free").status_code == 204
    assert intents.delete(CONSUMERS).status_code == 204
    assert intents.get(CONSUMERS).json() == []


def test_row_13_a_container_is_needed_for_what_is_allocatable(intents: IntentsClient) -> None:
    make_group(intents)
    intents.made(INTENTS, named("i", app="a"))
    intents.made(CONSUMERS, named("k", kind="Deployment", name="d"))
    intents.made(REQUIREMENTS, named("label", allocatable=False, resource=LABEL))
    refused = status_and_field(intents, REQUIREMENTS, named("cpu", **CPU))
    assert refused == (400, "spec.allocatable")


def test_row_17_an_unknown_unit_is_refused(intents: IntentsClient) -> None:
    make_consumer(intents)
    memory = {"name": "memory", "requests": 1, "units": "Gx"}
    body = named("r", allocatable=True, resource=memory)
    assert status_and_field(intents, REQUIREMENTS, body) == (400, "spec.resource.units")


@pytest.mark.parametrize(
    ("allocatable", "resource", "field"),
    [
        (True, LABEL, "spec.resource.key"),
        (False, {"key": "x", "requests": 1}, "spec.resource.requests"),
    ],
)
def test_row_18_fields_of_labels_are_for_what_is_not_allocatable(
    intents: IntentsClient, allocatable: bool, resource: Json, field: str
) -> None:
    make_consumer(intents)
    body = named("r", allocatable=allocatable, resource=resource)
    assert status_and_field(intents, REQUIREMENTS, body) == (400, field)


def test_row_20_names_of_requirements_mean_nothing(intents: IntentsClient) -> None:
    make_consumer(intents)
    qat = {"name": "intel.com/qat", "requests": 1, "limits": 1}
    made = intents.made(REQUIREMENTS, named("logger-cpu-needs", allocatable=True, resource=qat))
    assert made["spec"]["resource"] == qat
