"""V7 of the acceptance scenario, at once: seven groups, room for six, on one server and on two.

Servers are processes of their own. Whoever is accepted is accepted for real: what is charged never
exceeds what nodes have, and the GPU has one holder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from tests.support import databases
from tests.support.intents import hardware, scenario
from tests.support.intents.caller import Caller
from tests.support.intents.scenario import C1, C2, C4, FWALL
from tests.support.server import dovetail

GROUPS = 7
ROUNDS = 3
Json = dict[str, Any]


@pytest.fixture(params=["sqlite", "postgresql", "two on postgresql"])
def servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Caller]]:
    kind = request.param.rpartition(" ")[2]
    model = request.getfixturevalue(f"{kind}_with_tables")
    url = databases.copied(model, tmp_path / "ledger.db")
    with ExitStack() as stack:
        count = 2 if request.param.startswith("two") else 1
        yield [
            Caller(stack.enter_context(dovetail(url, tmp_path / f"{each}.log")).url)
            for each in range(count)
        ]


def at_once(work: Callable[[int], tuple[int, Json]]) -> list[tuple[int, Json]]:
    ready = Barrier(GROUPS)

    def one(number: int) -> tuple[int, Json]:
        ready.wait()
        return work(number)

    with ThreadPoolExecutor(GROUPS) as pool:
        return list(pool.map(one, range(GROUPS)))


def test_v7_seven_at_once(servers: list[Caller]) -> None:
    first = servers[0]
    for post in scenario.v7(1).posts():
        first.post(post)
    for number in range(2, GROUPS + 1):
        for post in scenario.v7(number).intent_posts():
            first.post(post)
    groups = [scenario.v7(number).group.name for number in range(1, GROUPS + 1)]
    for group in groups:
        assert first.call("POST", f"{group}/approve")[0] == 202
    for _ in range(ROUNDS):
        answers = at_once(
            lambda at: servers[at % len(servers)].call("POST", f"{groups[at]}/instantiate")
        )
        statuses = sorted(status for status, _ in answers)
        assert statuses == [202] * 6 + [422], answers
        taken = [said["apps"][FWALL][0] for status, said in answers if status == 202]
        assert sorted(each["cluster"] for each in taken) == [C1, C1, C2, C4, C4, C4]
        assert sorted(each["score"] for each in taken) == [0, 0, 0, 0, 0, 9]
        assert_nothing_is_given_twice(first, groups)
        accepted = [
            group for group, (status, _) in zip(groups, answers, strict=True) if status == 202
        ]
        for group in accepted:
            assert first.call("POST", f"{group}/terminate")[0] == 202
        assert charged(first, groups) == {}


def charged(server: Caller, groups: list[str]) -> dict[tuple[str, str, str], int]:
    """By cluster, node and resource, of all groups."""
    found: dict[tuple[str, str, str], int] = {}
    for group in groups:
        status, said = server.call("GET", f"{group}/status")
        assert status == 200
        for app in said["apps"]:
            for each in app["clusters"]:
                for charge in each["charges"]:
                    for resource, units in charge["resources"].items():
                        key = (each["cluster"], charge["node"], resource)
                        found[key] = found.get(key, 0) + units
    return found


def assert_nothing_is_given_twice(server: Caller, groups: list[str]) -> None:
    found = charged(server, groups)
    for (cluster, node, resource), units in found.items():
        free = hardware.CLUSTERS[cluster][node]
        if resource == "cpu":
            assert units <= int(free["cpu"]) * 1000
        elif resource == hardware.GPU:
            assert units <= int(free[hardware.GPU])
    assert sum(units for (_, _, each), units in found.items() if each == hardware.GPU) == 1
