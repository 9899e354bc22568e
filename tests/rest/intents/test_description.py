"""The description of the door of intents is true of what it does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.config import (
    CoveragePhaseConfig,
    GenerationConfig,
    PhasesConfig,
    ProjectConfig,
    ProjectsConfig,
    SchemathesisConfig,
)
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.specs.openapi.schemas import OpenApiSchema

from dovetail.intents.documents.kinds import KINDS
from dovetail.rest.intents.door import INTENTS
from dovetail.rest.openapi.document import document
from dovetail.rest.server.site import server_door
from tests.rest.conftest import Make
from tests.rest.intents.client import IntentsClient
from tests.rest.intents.fake_actions import FakeActions
from tests.rest.intents.story import (
    action_story,
    cloud_story,
    document_story,
    parents_story,
)
from tests.support import server

EXAMPLES = 6
"""Kinds share their handlers: few of each are many of all."""
HEADERS = {"x-auth-token": "admin"}
CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
NAMES = {
    **{name: "n" for kind in KINDS.values() for name in kind.placeholders},
    "compositeAppVersion": "v1",
}


def described() -> OpenApiSchema:
    generation = GenerationConfig(max_examples=EXAMPLES, deterministic=True, database="none")
    phases = PhasesConfig(coverage=CoveragePhaseConfig(enabled=False))
    project = ProjectConfig(generation=generation, phases=phases)
    config = SchemathesisConfig(projects=ProjectsConfig(default=project))
    whole = document([INTENTS], server_door([INTENTS]))
    paths = {path: each for path, each in whole["paths"].items() if path.startswith("/v2/")}
    return schemathesis.openapi.from_dict({**whole, "paths": paths}, config=config)


DESCRIBED = described()


def test_every_operation_succeeds_as_described(serve: Make) -> None:
    client = IntentsClient(serve(intents=FakeActions()))
    unseen = {(method, path) for path, methods in INTENTS.mounted().items() for method in methods}
    for method, path, body in (*document_story(), *cloud_story(), *action_story()):
        answer = client.call(method, path, body)
        assert answer.is_success, (method, path, answer.text)
        operation = DESCRIBED.find_operation_by_path(method, f"/v2/{path.partition('?')[0]}")
        assert operation is not None
        operation.validate_response(answer)
        unseen.discard((operation.method.upper(), operation.path))
    assert unseen == set()


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with a document of every kind."""
    directory: Path = tmp_path_factory.mktemp("intents")
    database = f"sqlite:///{directory}/ledger.db"
    with server.dovetail(database, directory / "server.log") as started:
        for method, path, body in parents_story():
            made = httpx2.request(method, f"{started.url}/v2/{path}", json=body, headers=HEADERS)
            assert made.status_code == 201, made.text
        yield started.url


@DESCRIBED.parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_what_is_answered_is_described(case: Case[Any], live: str) -> None:
    assert case.headers is not None
    case.headers.update(HEADERS)
    case.call_and_validate(base_url=live, checks=CHECKS)
    if case.path_parameters:
        case.path_parameters = {name: NAMES[name] for name in case.path_parameters}
        case.call_and_validate(base_url=live, checks=CHECKS)
