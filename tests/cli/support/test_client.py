"""What becomes of answers other than success: an exit code, and words that help."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest

from tests.cli.conftest import Parrot, commands
from tests.rest.certificates import Authority


@pytest.mark.parametrize(
    ("status", "body", "code", "words"),
    [
        (401, {"detail": ""}, 5, "DOVETAIL_TOKEN"),
        (403, {"detail": "Policy does not allow it."}, 5, "Policy does not allow it."),
        (404, {"detail": "No such thing."}, 3, "Error: No such thing.\n"),
        (400, {"errors": [{"detail": "Lead.\n\n Cause.  "}]}, 3, "Error: Cause.\n"),
        (400, {"errors": [{"detail": "Lead.\n\n   "}]}, 3, "Error: Lead.\n"),
        (400, b"plain", 3, "Error: plain\n"),
        (400, [], 3, "Error: The server refused (400).\n"),
        (400, {"errors": "many"}, 3, "Error: The server refused (400).\n"),
        (400, {"errors": [{"code": 7}]}, 3, "Error: The server refused (400).\n"),
        (404, b"\n<html>no</html>", 3, "Error: The server refused (404).\n"),
        (500, {"detail": "See the log."}, 4, "The server failed (500). See the log."),
        (503, b"", 4, "The server failed (503)."),
        (302, b"", 4, "The server failed (302)."),
        (200, b"<html>", 4, "no JSON"),
    ],
)
def test_every_answer_has_its_exit_code(
    parrot: Parrot, status: int, body: object, code: int, words: str
) -> None:
    parrot.says("GET", "/dovetail/v1/usage", body, status)
    found = commands(parrot.url)("usage")
    assert found.exit_code == code
    assert words in found.stderr
    assert found.stdout == ""


def test_an_answer_that_was_cut_off_is_no_answer(tmp_path: Path) -> None:
    """Neither on the screen nor in a file that was whole before."""
    kept = tmp_path / "fleet.jsonl"
    kept.write_text("before")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            for _ in range(2):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}")

        thread = threading.Thread(target=answer)
        thread.start()
        run = commands(f"http://127.0.0.1:{listener.getsockname()[1]}")
        dumped, used = run("dump", "-f", str(kept)), run("usage")
        thread.join()
    assert (dumped.exit_code, used.exit_code) == (4, 4)
    assert [path.name for path in tmp_path.iterdir()] == ["fleet.jsonl"]
    assert kept.read_text() == "before"


def test_a_token_that_is_none() -> None:
    for token in ("new\nline", "höhle"):
        found = commands("http://127.0.0.1:1", token)("usage")
        assert (found.exit_code, "--token" in found.stderr) == (2, True)


def test_nobody_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        found = commands(url)("usage")
    assert found.exit_code == 4
    assert found.stderr.startswith(f"Error: {url}: Connection refused. Is a server running there?")


@pytest.mark.parametrize("url", ["127.0.0.1:8778", "ftp://x", "http://", "http://x:port"])
def test_an_address_that_is_none(url: str) -> None:
    found = commands(url)("usage")
    assert (found.exit_code, "--server" in found.stderr) == (2, True)


def test_without_a_token_the_server_says_what_to_do(demo: str) -> None:
    found = commands(demo, token=None)("usage")
    assert found.exit_code == 5
    assert "DOVETAIL_TOKEN" in found.stderr


def test_an_address_may_have_a_path(parrot: Parrot) -> None:
    parrot.says("GET", "/placement/dovetail/v1/usage", {"classes": {}})
    assert commands(f"{parrot.url}/placement/")("usage").exit_code == 0


def test_only_servers_with_a_trusted_certificate_are_believed(
    parrot: Parrot, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, "authority")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.sign("server"))
    parrot.socket = context.wrap_socket(parrot.socket, server_side=True)
    parrot.says("GET", "/dovetail/v1/usage", {"classes": {}})
    run = commands(parrot.url.replace("http:", "https:"))
    assert run("usage", "--ca-file", str(authority.file)).exit_code == 0
    refused = run("usage")
    assert (refused.exit_code, "certificate verify failed" in refused.stderr) == (4, True)


def test_certificates_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("none")
    found = commands("https://127.0.0.1:1")("usage", "--ca-file", str(tmp_path / "ca.pem"))
    assert (found.exit_code, "--ca-file" in found.stderr) == (2, True)


def test_a_server_that_refuses_a_long_body_is_heard(demo: str, tmp_path: Path) -> None:
    """It answers before it has read everything; the rest of the body has nowhere to go."""
    line = b'{"name": 1, "uuid": "' + b"x" * 2**20 + b'"}\n'
    (tmp_path / "fleet.jsonl").write_bytes(line * 32)
    found = commands(demo)("load", str(tmp_path / "fleet.jsonl"))
    assert found.exit_code == 3
    assert "line 1" in found.stderr
