"""Runs OpenStack Placement's own API tests against Dovetail.

The test files are read from the installed openstack-placement package:

    .venv-reference/bin/python -m tests.conformance.gabbits

Each file gets a fresh server and its starting world over HTTP. The last line counts tests; status
1 means that some failed.
"""

import importlib.resources
import os
import sys
import time
import unittest
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import httpx
from gabbi import handlers, suitemaker, utils

from tests.conformance import report, runner, server, worlds
from tests.support.processes import ProcessError

LEFT_OUT = {("basic-http", "bad content length not int")}
"""No HTTP client sends a Content-Length that is not a number, and servers end such a request
before an application sees it."""

Failures = list[tuple[str, str]]


def test_files(pattern: str) -> list[Path]:
    package = Path(str(importlib.resources.files("placement")))
    directory = package / "tests" / "functional" / "gabbits"
    return sorted(path for path in directory.glob("*.yaml") if fnmatch(path.stem, pattern))


def run_file(path: Path, ledger: str, nursery: Path) -> report.Outcome:
    """Run one file; without a server or a starting world all its tests fail."""
    began = time.monotonic()
    content = utils.load_yaml(yaml_file=str(path))
    tests = [test for test in content["tests"] if (path.stem, test["name"]) not in LEFT_OUT]
    left_out = len(content["tests"]) - len(tests)
    content["tests"] = tests
    try:
        failures = _run_on_server(path, content, ledger, nursery)
    except (ProcessError, worlds.WorldError, httpx.HTTPError, OSError) as error:
        failures = [(test["name"], f"{type(error).__name__}: {error}") for test in tests]
    return report.Outcome(
        name=path.stem,
        passed=len(tests) - len(failures),
        failures=tuple(failures),
        left_out=left_out,
        seconds=time.monotonic() - began,
    )


def _run_on_server(path: Path, content: dict[str, Any], ledger: str, nursery: Path) -> Failures:
    (fixture,) = content["fixtures"]
    world = worlds.WORLDS[fixture]
    with server.serving(ledger, nursery, world.profile) as url:
        variables = worlds.prepare(world, url)
        with mock.patch.dict(os.environ, variables), httpx.Client(trust_env=False) as connection:
            suite = _suite(path, content, url)
            for test in suite:
                # Every test brings a client of its own; one for all keeps the connection.
                test.http.client = connection
            result = unittest.TestResult()
            suite.run(result)
    failed = report.failures_of(result)
    return [(test.test_data["name"], message) for test, message in failed.items()]


def _suite(path: Path, content: dict[str, Any], url: str) -> Any:
    content.setdefault("defaults", {})["cert_validate"] = False
    address = urlsplit(url)
    return suitemaker.test_suite_from_dict(
        unittest.defaultTestLoader,
        path.stem,
        content,
        str(path.parent),
        address.hostname,
        address.port,
        fixture_module=None,
        intercept=None,
        handlers=[handler() for handler in handlers.RESPONSE_HANDLERS],
    )


def main() -> int:
    parser = runner.parser("Run OpenStack Placement's own API tests against Dovetail.")
    parser.add_argument("--only", metavar="GLOB", default="*", help="files with such a name")
    options = parser.parse_args()
    files = test_files(options.only)
    if not files:
        parser.error(f"no test file is called {options.only}")
    return runner.run(run_file, files, options)


if __name__ == "__main__":
    sys.exit(main())
