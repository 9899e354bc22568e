"""Registrations, and whom a group calls by the maps of its intents."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.core.errors import Malformed
from dovetail.intents.controllers import (
    CallTerms,
    ControllerContract,
    ControllerTls,
    ControllerType,
    FailurePolicy,
    Roster,
    controller_spec,
    roster_of,
    terms_of,
)


def spec(**more: Any) -> Any:
    return controller_spec("region", {"host": "region", "port": 9090, **more})


def test_emcos_fields_alone_are_a_registration_of_its_contract() -> None:
    found = spec(type="placement", priority=3)
    assert (found.host, found.port, found.priority) == ("region", 9090, 3)
    assert found.type is ControllerType.PLACEMENT
    assert found.contract is ControllerContract.EMCO
    assert found.on_failure is FailurePolicy.REFUSE
    assert spec().type is None


def test_our_fields() -> None:
    found = spec(
        contract="dovetail", deadline=2, onFailure="lastAnswer", tls={"ca": "x", "serverName": "y"}
    )
    assert found.contract is ControllerContract.DOVETAIL
    assert found.tls == ControllerTls("x", "y")
    assert terms_of(found, CallTerms()) == CallTerms(2.0, FailurePolicy.LAST_ANSWER)
    assert terms_of(spec(), CallTerms(7.0)) == CallTerms(7.0)
    assert terms_of(None, CallTerms(7.0)) == CallTerms(7.0)


@pytest.mark.parametrize(
    ("field", "value"),
    [("port", 0), ("port", 70000), ("type", "magic"), ("deadline", 0), ("onFailure", "hope")],
)
def test_what_cannot_be_is_told_with_its_field(field: str, value: object) -> None:
    with pytest.raises(Malformed, match=rf"controller region: .*\$\.{field}"):
        spec(**{field: value})


def test_a_built_in_ones_name_is_taken() -> None:
    with pytest.raises(Malformed, match="hpa is a built-in controller"):
        controller_spec("hpa", {"host": "h", "port": 1})


def test_only_controllers_that_the_group_names_are_called() -> None:
    registered = {
        "zone": spec(type="placement", priority=1),
        "cost": spec(type="placement", priority=9),
        "never": spec(type="placement"),
        "dtc": spec(type="action", priority=2),
        "ovn": spec(type="action", priority=1),
        "acl": spec(type="action", priority=2),
        "odd": spec(),
    }
    maps = [
        {"genericPlacementIntent": "g", "zone": "z", "dtc": "d", "moon": "m", "odd": "o"},
        {"cost": "c", "ovn": "o", "acl": "a"},
    ]
    roster = roster_of(maps, registered)
    assert [(each.name, each.intent) for each in roster.placement] == [("cost", "c"), ("zone", "z")]
    assert [each.name for each in roster.actions] == ["ovn", "acl", "dtc"]
    assert roster.unregistered == ("moon",)
    assert roster.untyped == ("odd",)
    assert roster.hpa is None


def test_emcos_names_of_what_is_built_in_call_nobody() -> None:
    placement = spec(type="placement", deadline=3)
    registered = {
        "hpa-placement-controller-1": placement,
        "hpa-action-controller-1": spec(type="action"),
        "rsync": spec(),
    }
    maps = [dict.fromkeys(registered, "intent") | {"hpa-unregistered": "x"}]
    assert roster_of(maps, registered) == Roster(hpa=placement)
