"""Who may do what with intents, and what the audit log has of it."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from dovetail.rest.server.audit_log import AuditLog
from tests.rest.conftest import Make
from tests.rest.intents.client import GROUP, IntentsClient, make_group, named

READER = {"x_auth_token": "reader:p", "x_roles": "reader"}
STRANGER = {"x_auth_token": "reader:q", "x_roles": "reader"}
SERVICE = {"x_auth_token": "svc:s", "x_roles": "service"}


@pytest.fixture
def secure(serve: Make) -> IntentsClient:
    make_group(IntentsClient(serve("open")))
    return IntentsClient(serve("secure"))


def test_a_reader_of_a_project_sees_what_is_below_it(secure: IntentsClient) -> None:
    for path in ("projects/p", "projects/p/composite-apps", GROUP):
        assert secure.get(path, **READER).status_code == 200
        assert secure.get(path, **STRANGER).status_code == 403


def test_whatever_else_he_says(secure: IntentsClient) -> None:
    """The query of Placement, which names a project, counts for nothing here."""
    for path in ("projects/p", "projects", "cluster-providers", "controllers"):
        assert secure.get(f"{path}?project_id=q", **STRANGER).status_code == 403


def test_a_reader_changes_nothing(secure: IntentsClient) -> None:
    assert secure.put("projects/p", named("p"), **READER).status_code == 403
    assert secure.delete(GROUP, **READER).status_code == 403
    assert secure.call("POST", f"{GROUP}/approve", **READER).status_code == 403


def test_all_projects_clusters_and_controllers_are_not_for_readers(secure: IntentsClient) -> None:
    for path in ("projects", "cluster-providers", "controllers"):
        assert secure.get(path, **READER).status_code == 403
        assert secure.get(path, **SERVICE).status_code == 200


def test_clusters_and_controllers_are_registered_by_admins(secure: IntentsClient) -> None:
    controller = named("x", host="h", port=1)
    for path, body in (("cluster-providers", named("p1")), ("controllers", controller)):
        assert secure.post(path, body, **SERVICE).status_code == 403
        assert secure.post(path, body).status_code == 201


def test_every_change_is_audited(serve: Make, tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    log = AuditLog(file)
    client = IntentsClient(serve(audit_log=log))
    client.post("projects", named("p"))
    client.post("projects", named("p"))
    client.get("projects/p")
    client.delete("projects/p")
    lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
    assert [(each["action"], each["status"], each["objects"]) for each in lines] == [
        ("intents:write", 201, {}),
        ("intents:write", 409, {}),
        ("intents:write", 204, {"project": "p"}),
    ]
    log.close()
