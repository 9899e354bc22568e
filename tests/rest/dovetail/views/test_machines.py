"""Machines as the ledger knows them: stock by type, and who holds units of it."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dovetail.ledger import open_ledger
from dovetail.ledger.machines.queue import GroupQueue
from dovetail.service.machine_units import MachineLedger
from tests.rest.client import Client
from tests.rest.console.test_pages import read
from tests.rest.fleets import uid
from tests.service.machine_world import GROUP, guest, line, queued, shape, sleeper, stock

MACHINES = "/dovetail/v1/machines"


@pytest.fixture
def sold(client: Client, tmp_path: Path) -> Client:
    """Three large machines for sale: one sold, one in stock; of small ones, two make a large."""
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db")
    large, small = shape("large"), shape("small", root="large", share=Fraction(1, 2))

    async def sell() -> None:
        machines = MachineLedger(ledger)
        await machines.enter_node("n1", 64, 2**20, [])
        await machines.set_stock(GROUP, stock(3, large, small))
        await machines.move(
            [
                guest(large, consumer=uid("guest")),
                sleeper(large, consumer=uid("sleeper")),
                guest(small, consumer=uid("half")),
            ]
        )

    asyncio.run(sell())
    ledger.close()
    return client


def group(client: Client) -> Any:
    (found,) = client.get(MACHINES).json()["groups"]
    return found


def test_stock_is_told_by_type(sold: Client) -> None:
    found = group(sold)
    assert (found["cluster"], found["name"]) == ("", GROUP)
    assert (found["queue"], found["told_at"]) == (None, None), "no operator told anything"
    assert found["types"] == [
        {"type": "large", "max": 3, "reserved": 1, "used": 1, "waiting": None},
        {"type": "small", "max": 3, "reserved": 0, "used": 1, "waiting": None},
    ]


def test_holders_are_told(sold: Client) -> None:
    held = {each["consumer"]: each for each in group(sold)["holders"]}
    assert held.keys() == {uid("guest"), uid("sleeper"), uid("half")}
    one = held[uid("guest")]
    assert one.pop("from").endswith("Z")
    assert one == {
        "consumer": uid("guest"),
        "type": "large",
        "node": "n1",
        "stock": False,
        "project": "team",
        "pod": None,
        "user": "ada",
        "until": None,
    }
    assert held[uid("sleeper")]["stock"] is True


def tell(folder: Path, cluster: str = "", **queues: GroupQueue) -> None:
    """As the operator of the cluster does."""
    ledger = open_ledger(f"sqlite:///{folder}/ledger.db")
    asyncio.run(MachineLedger(ledger, cluster).set_queues(queues))
    ledger.close()


def test_who_waits_is_told_in_line_and_why(sold: Client, tmp_path: Path) -> None:
    late = queued("late", "small", reason=None, message="", since=None)
    tell(tmp_path, general=line(queued("first"), late))
    found = group(sold)
    assert [each["waiting"] for each in found["types"]] == [1, 1]
    assert found["told_at"].endswith("Z")
    assert found["queue"] == [
        {
            "position": 1,
            "consumer": uid("first"),
            "type": "large",
            "project": "team",
            "pod": "first",
            "since": "2026-11-18T09:00:00Z",
            "reason": "SoldOut",
            "message": "all units are sold",
        },
        {
            "position": 2,
            "consumer": uid("late"),
            "type": "small",
            "project": "team",
            "pod": "late",
            "since": None,
            "reason": None,
            "message": "",
        },
    ]


def test_an_empty_queue_is_not_an_unknown_one(sold: Client, tmp_path: Path) -> None:
    tell(tmp_path, general=line())
    found = group(sold)
    assert found["queue"] == []
    assert [each["waiting"] for each in found["types"]] == [0, 0]


def test_holders_have_names_and_what_is_lent_has_an_end(sold: Client, tmp_path: Path) -> None:
    """One that is on its way is named in line; stock is lent to nobody."""
    coming = queued("half", "small", reason="BeingSold")
    lent = line(coming, lent_seconds={"large": 3600}, pods={uid("guest"): "trainer"})
    tell(tmp_path, general=lent)
    held = {each["consumer"]: each for each in group(sold)["holders"]}
    assert {key: each["pod"] for key, each in held.items()} == {
        uid("guest"): "trainer",
        uid("half"): "half",
        uid("sleeper"): None,
    }
    one = held[uid("guest")]
    lasts = datetime.fromisoformat(one["until"]) - datetime.fromisoformat(one["from"])
    assert lasts == timedelta(hours=1)
    assert (held[uid("half")]["until"], held[uid("sleeper")]["until"]) == (None, None)


def test_a_group_that_nobody_sells_is_told_if_somebody_waits(sold: Client, tmp_path: Path) -> None:
    tell(tmp_path, "eu", typo=line(queued("lost", "gone", "UnknownMachine")))
    lab, typo = sold.get(MACHINES).json()["groups"]
    assert (lab["name"], lab["queue"]) == (GROUP, None), "another cluster's operator told"
    assert (typo["cluster"], typo["name"], typo["types"], typo["holders"]) == (
        "eu/",
        "typo",
        [],
        [],
    )
    assert [each["pod"] for each in typo["queue"]] == ["lost"]


def test_the_page_says_the_same(sold: Client, tmp_path: Path) -> None:
    page = read(sold, "/console/machines")
    assert page.row("large") == ["large", "3", "1", "1", "not known"]
    assert page.row(uid("half"))[1:5] == ["", "small", "team", "n1"]
    assert page.row(uid("half"))[-1] == "not known"
    assert "No operator has told" in page.text
    assert "/console/machines" in page.links

    lent = line(
        queued("first"),
        queued("second", reason=None),
        lent_seconds={"large": 3600},
        pods={uid("guest"): "trainer"},
    )
    tell(tmp_path, general=lent)
    page = read(sold, "/console/machines")
    assert page.row("large") == ["large", "3", "1", "1", "2"]
    assert page.row("small")[-1] == "0"
    held = {each["consumer"]: each for each in group(sold)["holders"]}
    one = held[uid("guest")]
    assert page.row(uid("guest")) == [
        uid("guest"),
        "trainer",
        "large",
        "team",
        "n1",
        one["from"],
        one["until"],
    ]
    assert page.row(uid("half"))[-1] == "no end"
    assert page.row("1")[1:] == [
        "first",
        "large",
        "team",
        "2026-11-18T09:00:00Z",
        "SoldOut",
        "all units are sold",
    ]
    assert page.row("2")[5] == "its turn is to come"
    assert "svg" in page.tags, "holds over time"


def test_names_of_guests_stay_text(sold: Client, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script><b x=\"'&\u202e"
    guest_in_line = queued(hostile, hostile, hostile, hostile)
    tell(tmp_path, general=line(guest_in_line, pods={uid("guest"): hostile}))
    page = read(sold, "/console/machines")
    assert page.row("1")[1:3] == [hostile, hostile]
    assert page.row("1")[5:] == [hostile, hostile]
    assert page.row(uid("guest"))[1] == hostile
    assert not page.tags & {"script", "b"}


def test_where_none_are_sold_there_are_none(client: Client) -> None:
    assert client.get(MACHINES).json() == {"groups": []}
    assert client.get(MACHINES, x_auth_token="mia").status_code == 403
