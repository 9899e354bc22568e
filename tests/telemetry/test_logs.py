"""The lines of daemons: JSON or text, ours and those of libraries, on the stream they belong to."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SPEAK = """
import logging, structlog
from dovetail.telemetry import logs
logs.configure("info", {form!r}, to_stderr={to_stderr})
structlog.get_logger().info("ours", path=(1, 2))
structlog.get_logger().debug("unheard")
logging.getLogger("library").warning("theirs: %s", 7)
"""


def lines(form: str, *, to_stderr: bool) -> list[str]:
    command = [sys.executable, "-c", SPEAK.format(form=form, to_stderr=to_stderr)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said, silent = (done.stderr, done.stdout) if to_stderr else (done.stdout, done.stderr)
    assert silent == ""
    return said.splitlines()


@pytest.mark.parametrize(("level", "heard"), [("info", False), ("debug", True)])
def test_the_http_client_has_no_line_for_every_request(level: str, heard: bool) -> None:
    speak = f"""
import http.server, threading, httpx2
from dovetail.telemetry import logs
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
server.RequestHandlerClass.log_message = lambda *_: None
threading.Thread(target=server.handle_request).start()
logs.configure({level!r}, "json")
httpx2.get(f"http://127.0.0.1:{{server.server_port}}/pods", trust_env=False)
"""
    done = subprocess.run([sys.executable, "-c", speak], capture_output=True, text=True, check=True)
    assert ("HTTP Request: GET" in done.stdout) is heard


@pytest.mark.parametrize("to_stderr", [False, True])
def test_json(to_stderr: bool) -> None:
    ours, theirs = (json.loads(line) for line in lines("json", to_stderr=to_stderr))
    assert (ours["event"], ours["level"], ours["path"]) == ("ours", "info", [1, 2])
    assert (theirs["event"], theirs["level"]) == ("theirs: 7", "warning")
    assert ours["timestamp"].endswith("Z")


def test_text() -> None:
    ours, theirs = lines("text", to_stderr=True)
    assert "[info     ] ours" in ours
    assert theirs == "WARNING:library:theirs: 7"
