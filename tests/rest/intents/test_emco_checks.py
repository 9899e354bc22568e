"""By EMCO's switch: in which order things are checked, what is asked with QUERY, and what groups
and logical clouds answer that are not there or not so far.
"""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.core.errors import NotFound
from dovetail.service.intents.settings import IntentSettings
from tests.rest.conftest import Make
from tests.rest.intents.client import (
    CONSUMERS,
    CPU,
    GROUP,
    INTENTS,
    REQUIREMENTS,
    IntentsClient,
    make_consumer,
    make_group,
    named,
)
from tests.rest.intents.fake_actions import FakeActions
from tests.rest.intents.test_emco import told

LABEL = {"allocatable": False, "resource": {"key": "a", "value": "b"}}
GREEDY = {"allocatable": True, "resource": {"name": "cpu", "requests": 3, "limits": 2}}
CLOUDS = "projects/p/logical-clouds"


def deploying(serve: Make, actions: FakeActions) -> IntentsClient:
    settings = IntentSettings(emco_status_codes=True)
    return IntentsClient(serve(intents=actions, intent_settings=settings))


@pytest.mark.parametrize(
    ("path", "query", "name", "text"),
    [
        (INTENTS, "intent", "i", "Intent not found"),
        (CONSUMERS, "consumer", "k", "Consumer not found"),
        (REQUIREMENTS, "resource", "r", "Resource not found"),
    ],
)
def test_the_method_query_asks_for_one(
    emco: IntentsClient, path: str, query: str, name: str, text: str
) -> None:
    """GET ignores the query, so EMCO's own scripts ask so."""
    make_consumer(emco)
    emco.made(REQUIREMENTS, named("r", **CPU))
    found = emco.call("QUERY", f"{path}?{query}={name}")
    assert (found.status_code, found.json()["metadata"]["name"]) == (200, name)
    assert told(emco.call("QUERY", f"{path}?{query}=none")) == (404, text)
    assert emco.call("QUERY", path).status_code == 405
    assert emco.call("QUERY", "projects").status_code == 405


@pytest.mark.parametrize(
    "spec", [{**LABEL, "allocatable": True}, {**CPU, "allocatable": False}], ids=str
)
def test_what_is_said_of_a_resource_agrees_with_its_form(
    emco: IntentsClient, spec: dict[str, Any]
) -> None:
    make_consumer(emco)
    status, text = told(emco.post(REQUIREMENTS, named("r", **spec)))
    assert status == 400
    assert "allocatable and resource field value mismatch" in text


def test_more_than_its_limits(emco: IntentsClient) -> None:
    make_consumer(emco)
    status, text = told(emco.post(REQUIREMENTS, named("r", **GREEDY)))
    assert status == 400
    assert text.startswith("JsonSchemaValidation: Document Validation failed")
    assert "requests must be less or equal to limits" in text


def test_a_label_minds_no_limits(emco: IntentsClient) -> None:
    make_consumer(emco)
    assert emco.post(REQUIREMENTS, named("r", **LABEL)).status_code == 201


def test_a_consumer_without_a_container(emco: IntentsClient) -> None:
    make_consumer(emco)
    emco.made(CONSUMERS, named("bare", name="d"))
    below = f"{CONSUMERS}/bare/resource-requirements"
    assert told(emco.post(below, named("r", **CPU))) == (400, "param[] is empty")


def test_the_consumer_is_looked_for_first(emco: IntentsClient) -> None:
    make_consumer(emco)
    below = f"{CONSUMERS}/none/resource-requirements"
    for reply in (
        emco.post(below, named("r", **GREEDY)),
        emco.put(f"{below}/r", named("other", **CPU)),
    ):
        assert told(reply) == (404, "Consumer not found")


def test_parameters_that_nobody_knows_are_ignored(emco: IntentsClient) -> None:
    make_consumer(emco)
    assert emco.get(f"{INTENTS}/i?x=y").status_code == 200
    assert emco.post(f"{INTENTS}?x=y", named("j", app="a")).status_code == 201
    assert emco.delete(f"{INTENTS}/j?x=y").status_code == 204


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("type=x", "Invalid query type"),
        ("output=x", "Invalid query output"),
        ("app=-", "Invalid app query"),
        ("cluster=x", "Invalid cluster query"),
    ],
)
def test_the_status_that_is_asked_for(serve: Make, query: str, text: str) -> None:
    emco = deploying(serve, FakeActions())
    make_group(emco)
    assert told(emco.get(f"{GROUP}/status?{query}")) == (400, text)


def test_groups_that_are_not_there(serve: Make) -> None:
    actions = FakeActions()
    actions.error = NotFound("there is no deployment-intent-group 'g'")
    emco = deploying(serve, actions)
    for action, status in (
        ("approve", 500),
        ("terminate", 500),
        ("stop", 500),
        ("instantiate", 404),
        ("update", 404),
    ):
        reply = emco.post(f"{GROUP}/{action}", None)
        assert told(reply) == (status, "DeploymentIntentGroup not found"), action
    assert told(emco.get(f"{GROUP}/status")) == (400, "DeploymentIntentGroup not found")


def test_clouds_that_are_so_far_already(emco: IntentsClient) -> None:
    emco.made("projects", named("p"))
    emco.made(CLOUDS, named("l", level="0"))
    assert told(emco.get(f"{CLOUDS}/l/cluster-references")) == (
        400,
        "No Cluster References associated",
    )
    spec = {"clusterProvider": "p", "cluster": "c"}
    emco.made(f"{CLOUDS}/l/cluster-references", named("r", **spec))
    assert emco.post(f"{CLOUDS}/l/instantiate", None).status_code == 202
    assert told(emco.post(f"{CLOUDS}/l/instantiate", None)) == (
        409,
        "The Logical Cloud is already instantiated",
    )
    assert told(emco.delete(f"{CLOUDS}/l"))[0] == 409
    assert emco.post(f"{CLOUDS}/l/terminate", None).status_code == 202
    assert told(emco.post(f"{CLOUDS}/l/terminate", None)) == (
        409,
        "The Logical Cloud has already been terminated",
    )
