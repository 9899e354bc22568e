"""One fixture: the two answerers that have to agree, the oracle and the engine."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dovetail.core.request import Request
from tests.engine import oracle
from tests.engine.answers import ask, loaded
from tests.engine.forest import Forest
from tests.engine.oracle import Candidate

Answer = Callable[[Forest, Request], set[Candidate]]


def engine_answer(forest: Forest, request: Request) -> set[Candidate]:
    found = ask(loaded(forest), request)
    assert len(found) == len(set(found)), "a candidate was given twice"
    return set(found)


@pytest.fixture(params=[oracle.candidates, engine_answer], ids=["oracle", "engine"])
def answer(request: pytest.FixtureRequest) -> Answer:
    chosen: Answer = request.param
    return chosen
