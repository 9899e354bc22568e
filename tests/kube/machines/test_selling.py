"""Selling under load: exactly the stock is sold, the rest are told why, whoever dies meanwhile."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from threading import Event, Thread
from typing import Any

import pytest

from tests.kube.machines.bed import Bed, machine_bed, simple_spec
from tests.support import databases
from tests.support.kube.cluster import node_object

NODES = ("n0", "n1", "n2", "n3")
CREATED = 201


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    with machine_bed(tmp_path_factory.mktemp("selling"), operator=False) as running:
        running.cluster.apply(*(node_object(name, cpu="8", memory="64Gi") for name in NODES))
        yield running


class Watcher(Thread):
    """Looks at a Machine all the time, and keeps what should never be."""

    def __init__(self, bed: Bed, name: str) -> None:
        super().__init__(daemon=True)
        self._bed, self._name = bed, name
        self._over = Event()
        self.oversold: list[Any] = []
        self.looks = 0

    def __enter__(self) -> Watcher:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self.join()
        assert not self.oversold
        assert self.looks

    def run(self) -> None:
        while not self._over.is_set():
            self.looks += 1
            for row in self._bed.status(self._name).get("availableMachines", []):
                usage = row["usage"]
                if usage["reserved"] + usage["used"] > usage["maximum"]:
                    self.oversold.append(row)
            time.sleep(0.02)


def clear(bed: Bed, group: str) -> None:
    for name in bed.pods():
        bed.drop_pod(name)
    bed.drop_machine(group)
    bed.await_that(lambda: not bed.pods() and not bed.sleepers(), "nothing left")


def test_50_guests_at_once_for_a_stock_of_10(bed: Bed) -> None:
    bed.start_operator()
    bed.create_machine(simple_spec(NODES, 10), "ten")
    bed.await_ready("ten")
    with Watcher(bed, "ten"):
        names = [f"guest-{n}" for n in range(50)]
        answers = bed.create_guests(names, "small", group="ten")
        assert Counter(status for status, _ in answers) == {CREATED: 50}
        bed.await_usage("small", (10, 0, 10, 40), "ten")
        assert len(bed.running()) == 10
        rows = bed.status("ten")["waiting"]
        assert Counter(row["reason"] for row in rows) == {"SoldOut": 40}
        bed.await_that(lambda: len(bed.events("SoldOut")) >= 40, "events", 60)
    clear(bed, "ten")
    bed.stop_operators()


def test_20_guests_for_the_last_unit_five_times_over(bed: Bed) -> None:
    """Each time the one who has it goes, and exactly one of those who wait gets it."""
    bed.start_operator()
    bed.create_machine(simple_spec(NODES, 1), "last")
    bed.await_ready("last")
    with Watcher(bed, "last"):
        bed.create_guests([f"guest-{n}" for n in range(20)], "small", group="last")
        for left in range(19, 14, -1):
            bed.await_usage("small", (1, 0, 1, left), "last")
            (holder,) = bed.running()
            bed.drop_pod(holder)
    clear(bed, "last")
    bed.stop_operators()


def test_the_same_with_the_operator_killed_and_restarted_in_between(bed: Bed) -> None:
    operator = bed.start_operator()
    bed.create_machine(simple_spec(NODES, 10), "killed")
    bed.await_ready("killed")
    with Watcher(bed, "killed"):
        for round_ in range(5):
            bed.create_guests([f"guest-{round_}-{n}" for n in range(10)], "small", group="killed")
            operator.kill()
            operator.start()
        bed.await_usage("small", (10, 0, 10, 40), "killed")
        assert len(bed.running()) == 10
    clear(bed, "killed")
    bed.stop_operators()


def test_the_scheduler_keeps_no_room_for_who_waits(bed: Bed) -> None:
    """As after an operator that died when it had asked for the room, and not lifted the gate."""
    bed.start_operator()
    bed.create_machine(simple_spec(NODES, 1), "kept")
    bed.await_ready("kept")
    bed.create_guest("holder", "small", group="kept")
    bed.await_that(lambda: bed.running() == ["holder"], "holder")
    bed.create_guest("waits", "small", group="kept")
    bed.await_usage("small", (1, 0, 1, 1), "kept")
    kept = {"status": {"nominatedNodeName": bed.pods()["holder"]["spec"]["nodeName"]}}
    bed.cluster.request("PATCH", "/api/v1/namespaces/lab/pods/waits/status", kept)
    bed.await_that(lambda: "nominatedNodeName" not in bed.pods()["waits"]["status"], "free room")
    clear(bed, "kept")
    bed.stop_operators()


def test_the_same_with_two_replicas_of_which_one_is_killed(bed: Bed, postgres: str) -> None:
    database = databases.empty(postgres)
    replicas = [bed.start_operator(database=database) for _ in range(2)]
    bed.create_machine(simple_spec(NODES, 10), "two")
    bed.await_ready("two")
    with Watcher(bed, "two"):
        for round_ in range(4):
            bed.create_guests([f"guest-{round_}-{n}" for n in range(10)], "small", group="two")
            replica = replicas[round_ % 2]
            replica.kill()
            replica.start()
        bed.await_usage("small", (10, 0, 10, 30), "two")
        assert len(bed.running()) == 10
    clear(bed, "two")
    bed.stop_operators()


def halves() -> dict[str, Any]:
    spec = simple_spec(NODES, 4, name="whole")
    spec["machineTypes"][0]["spec"] = {"cpu": "4", "memory": "8Gi"}
    half = {
        "cpu": "2",
        "memory": "4Gi",
        "dependence": {"parent": "whole", "availableRatio": 0.5},
    }
    spec["machineTypes"].append({"name": "half", "spec": half, "available": 8})
    return spec


def test_the_same_with_halves(bed: Bed) -> None:
    bed.start_operator()
    bed.create_machine(halves(), "parts")
    bed.await_ready("parts")
    bed.await_usage("whole", (4, 4, 0, 0), "parts")
    with Watcher(bed, "parts"):
        # One half opens a whole, and a sleeper holds the rest of it.
        bed.create_guest("half", "half", group="parts")
        bed.await_usage("half", (8, 1, 1, 0), "parts")
        bed.await_usage("whole", (4, 3, 0.5, 0), "parts")
        bed.create_guests([f"whole-{n}" for n in range(5)], "whole", group="parts")
        bed.await_usage("whole", (4, 0, 3.5, 2), "parts")
        bed.create_guests([f"half-{n}" for n in range(5)], "half", group="parts")
        bed.await_usage("half", (8, 0, 2, 4), "parts")
        bed.await_usage("whole", (4, 0, 4, 2), "parts")
        # A whole goes: those who wait are served in order, by whole or by halves.
        (first, *_) = [name for name in bed.running() if name.startswith("whole")]
        bed.drop_pod(first)
        bed.await_usage("whole", (4, 0, 4, 1), "parts")
        for name in bed.pods():
            bed.drop_pod(name)
        bed.await_usage("whole", (4, 4, 0, 0), "parts")
        bed.await_usage("half", (8, 0, 0, 0), "parts")
    clear(bed, "parts")
    bed.stop_operators()
