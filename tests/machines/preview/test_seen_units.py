"""Units as pods show them: whoever is not behind its gate has one."""

from __future__ import annotations

from typing import Any

import msgspec

from dovetail.machines.names import HOSTNAME
from dovetail.machines.preview.seen_units import units_seen
from dovetail.machines.snapshot import UnitRecord
from dovetail.podfit.objects import Pod
from tests.machines.building import namespace
from tests.machines.lab import GROUP, Lab, kind, opted_in, small

SPACES = {"team": opted_in("team"), "plain": namespace("plain")}
CREATED = 1794823200
"""2026-11-16T10:00:00Z."""


def guest(name: str = "train", space: str = "team", **more: Any) -> Pod:
    lab = Lab(small(kind("small"), nodes={"n1": "small"}))
    pod = lab.ask(name, "small", namespace=space, minutes_ago=120)
    return msgspec.convert(merged(msgspec.to_builtins(pod), more), Pod)


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {
        **one,
        **{
            key: merged(one[key], value) if isinstance(value, dict) and key in one else value
            for key, value in other.items()
        },
    }


FREE: dict[str, Any] = {"schedulingGates": []}


def test_a_guest_behind_its_gate_has_none() -> None:
    assert units_seen([guest()], SPACES) == {}


def test_a_guest_on_its_node_has_one_since_it_was_scheduled() -> None:
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastTransitionTime": "2026-11-16T11:00:00Z",
    }
    status = {"conditions": [scheduled]}
    pod = guest(spec={**FREE, "nodeName": "n1"}, status=status)
    assert units_seen([pod], SPACES) == {
        GROUP: {"train": UnitRecord("small", "n1", False, CREATED + 3600)}
    }


def test_a_guest_that_was_let_go_has_one_where_it_is_pinned() -> None:
    pod = guest(spec={**FREE, "nodeSelector": {HOSTNAME: "n1"}})
    assert units_seen([pod], SPACES) == {
        GROUP: {"train": UnitRecord("small", "n1", False, CREATED)}
    }


def test_neither_those_that_ended_nor_those_that_are_only_labelled_have_any() -> None:
    over = guest("over", spec={**FREE, "nodeName": "n1"}, status={"phase": "Succeeded"})
    plain = guest("plain", "plain", spec={**FREE, "nodeName": "n1"})
    assert units_seen([over, plain], SPACES) == {}


def test_sleepers_hold_stock_when_they_have_their_place() -> None:
    lab = Lab(small(kind("small", available=1), nodes={"n1": "small"}))
    (sleeper,) = lab.sleepers.values()
    found = units_seen([sleeper], {})[GROUP][sleeper.metadata.uid]
    assert (found.type, found.node, found.is_stock) == ("small", "n1", True)
    waiting = msgspec.structs.replace(
        sleeper.spec, node_name="", scheduling_gates=guest().spec.scheduling_gates
    )
    assert units_seen([msgspec.structs.replace(sleeper, spec=waiting)], {}) == {}
