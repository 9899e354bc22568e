"""The audit log: a line for every write, and nothing secret in it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from dovetail.rest.server.audit_log import AuditLog, BadAuditLog
from tests.rest.client import Client
from tests.rest.conftest import Make

FULL = Path("/dev/full")
CONSUMER = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def client(serve: Make, log_file: Path) -> Client:
    return serve("secure", audit_log=AuditLog(log_file))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_write_leaves_a_line(client: Client, log_file: Path) -> None:
    made = client.call(
        "POST",
        "/resource_providers",
        {"name": "host"},
        x_auth_token="jo:blue",
        x_roles="service,admin",
        x_openstack_request_id="req-of-nova",
    )
    (line,) = lines(log_file)
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "outcome": "done",
        "status": made.status_code,
        "user": "jo",
        "project": "blue",
        "roles": ["admin", "service"],
        "client": "127.0.0.1",
        "method": "POST",
        "path": "/resource_providers",
        "action": "placement:resource_providers:create",
        "objects": {},
        "request_id": made.headers["x-openstack-request-id"],
        "global_request_id": "req-of-nova",
    }


def test_refused_writes_leave_one_too(client: Client, log_file: Path) -> None:
    path = f"/allocations/{CONSUMER}?secret=x"
    client.call("DELETE", path, x_auth_token="")
    client.call("DELETE", path, x_auth_token="jo")
    client.call("DELETE", path)
    client.call("PUT", "/nowhere", {})
    found = [(line["status"], line["outcome"], line["user"]) for line in lines(log_file)]
    refused = "refused"
    assert found == [
        (401, refused, None),
        (403, refused, "jo"),
        (404, refused, "admin"),
        (404, refused, "admin"),
    ]
    assert lines(log_file)[1]["objects"] == {"consumer_uuid": CONSUMER}
    assert lines(log_file)[1]["path"] == f"/allocations/{CONSUMER}"


def test_reads_leave_none_whatever_their_method(client: Client, log_file: Path) -> None:
    client.get("/resource_providers")
    client.call("OPTIONS", "/resource_providers")
    client.call("POST", "/dovetail/v1/names", {"providers": []})
    assert lines(log_file) == []


def test_neither_tokens_nor_bodies_nor_queries_are_told(client: Client, log_file: Path) -> None:
    tokens = {"x_auth_token": "admin:s3cret-1", "authorization": "Bearer s3cret-2"}
    client.call("POST", "/resource_providers?token=s3cret-3", {"name": "s3cret-4"}, **tokens)
    client.call("POST", "/resource_providers", {"name": "host"}, x_auth_token="s3cret-5:x")
    for secret in ("s3cret-2", "s3cret-3", "s3cret-4"):
        assert secret not in log_file.read_text()
    assert len(lines(log_file)) == 2


def test_a_line_cannot_be_forged_by_a_path(client: Client, log_file: Path) -> None:
    client.call("DELETE", "/traits/%0A%7B%22user%22%3A%22x%22%7D" + "A" * 5000)
    (line,) = lines(log_file)
    assert len(line["path"]) == 1000


def test_what_a_caller_makes_up_is_cut(client: Client, log_file: Path) -> None:
    client.call("DELETE", "/traits/" + "A" * 5000, x_openstack_request_id="r" * 5000)
    (line,) = lines(log_file)
    assert len(line["objects"]["name"]) == 1000
    assert len(line["global_request_id"]) == 100


def test_a_line_that_fits_only_in_part_goes_to_the_log(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "write", lambda _file, line: len(line) - 1)
    with capture_logs() as told:
        client.call("DELETE", "/traits/CUSTOM_A")
    (entry,) = [entry for entry in told if entry["log_level"] == "error"]
    assert "CUSTOM_A" in entry["line"]


def test_a_file_that_was_moved_away_is_begun_anew(
    serve: Make, log_file: Path, tmp_path: Path
) -> None:
    log = AuditLog(log_file)
    client = serve("secure", audit_log=log)
    client.call("DELETE", "/traits/CUSTOM_A")
    log_file.rename(tmp_path / "old.jsonl")
    client.call("DELETE", "/traits/CUSTOM_B")
    log.reopen()
    client.call("DELETE", "/traits/CUSTOM_C")
    assert [line["objects"]["name"] for line in lines(log_file)] == ["CUSTOM_C"]
    assert len(lines(tmp_path / "old.jsonl")) == 2


def test_two_processes_append_to_one_file(serve: Make, log_file: Path) -> None:
    for client in (serve("secure", audit_log=AuditLog(log_file)) for _ in range(2)):
        client.call("DELETE", "/traits/CUSTOM_A")
    assert len(lines(log_file)) == 2


def test_only_owner_and_group_may_read_it(client: Client, log_file: Path) -> None:
    assert log_file.stat().st_mode & 0o007 == 0


def test_a_full_disk_stops_no_answer(serve: Make) -> None:
    if not FULL.exists():
        pytest.skip("needs /dev/full")
    client = serve("secure", audit_log=AuditLog(FULL))
    assert client.call("POST", "/resource_providers", {"name": "host"}).status_code == 200


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadAuditLog, match=r"nowhere/audit\.jsonl: No such file"):
        AuditLog(tmp_path / "nowhere" / "audit.jsonl")
