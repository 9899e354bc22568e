"""Intents on the console's pages: the groups there are, the pick, why not elsewhere, the edits."""

from __future__ import annotations

from tests.rest.console.test_pages import read
from tests.rest.intents.operator import Operator
from tests.support.intents import scenario
from tests.support.intents.scenario import ANALYTICS, FWALL

LISTING = "/dovetail/v1/intents"


def test_a_group_is_listed_and_shown(operator: Operator) -> None:
    path = operator.make(scenario.base())
    _, project, _, app, version, _, group = path.split("/")
    client = operator.http
    (listed,) = client.get(LISTING).json()["groups"]
    assert listed == {
        "project": project,
        "app": app,
        "version": version,
        "group": group,
        "path": path,
        "state": None,
        "revision": None,
    }
    assert read(client, "/console/intents").row(group)[1:] == [
        project,
        f"{app} {version}",
        "not approved",
    ]
    plan, page = (
        operator.plan(path),
        read(client, f"/console/intents/{project}/{app}/{version}/{group}"),
    )
    for name in (FWALL, ANALYTICS):
        for picked in plan["pick"]["apps"][name]:
            assert page.row(picked["cluster"])[1] == str(picked["score"])
    for one in plan["refused"]:
        assert one["words"] in page.text
    for one in plan["placements"]:
        for edit in one["edits"]:
            assert edit["path"] in page.text


def test_the_state_of_a_deployment_is_told(operator: Operator) -> None:
    path = operator.make(scenario.base())
    assert operator.act(path, "approve").status_code == 202
    (listed,) = operator.http.get(LISTING).json()["groups"]
    assert listed["state"] is not None


def test_readers_see_the_groups_of_their_project(operator: Operator) -> None:
    project = operator.make(scenario.base()).split("/")[1]
    client = operator.http
    assert client.get(f"{LISTING}?project_id={project}").json()["groups"]
    assert client.get(f"{LISTING}?project_id=other").json()["groups"] == []
    assert client.get(LISTING, x_auth_token="mia").status_code == 403


def test_the_console_offers_them(operator: Operator) -> None:
    operator.make(scenario.base())
    assert "/console/intents" in read(operator.http, "/console").links
    assert operator.http.get("/console/me").json()["uses"]["intents"] is True


def test_a_group_that_is_not_there_is_not_found(operator: Operator) -> None:
    operator.make(scenario.base())
    read(operator.http, "/console/intents/p/c/v1/nothing", 404)
