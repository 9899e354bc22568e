"""Runs osc-placement's functional tests: the real openstack command against Dovetail.

The tests come from the installed osc-placement package:

    .venv-reference/bin/python -m tests.conformance.client

A short choice of them runs by default, all 160 with --all. Each test gets a fresh server.
"""

import contextlib
import functools
import importlib
import io
import os
import pkgutil
import sys
import time
import unittest
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import fixtures
from placement.tests.functional.fixtures import placement

from tests.conformance import report, runner, server

PACKAGE = "osc_placement.tests.functional"

CHOSEN = (
    "test_aggregate.TestAggregate119.test_success_set_multiple_aggregates",
    "test_allocation.TestAllocation138.test_allocation_update",
    "test_allocation.TestAllocationUnset128.test_allocation_unset_provider_and_rc",
    "test_allocation_candidate.TestAllocationCandidate129.test_granular_two_groups",
    "test_allocation_candidate.TestAllocationCandidate139.test_list_with_any_traits",
    "test_inventory.TestAggregateInventory.test_with_aggregate_one_fails",
    "test_inventory.TestSetInventory.test_fail_if_incorrect_resource",
    "test_plugin.TestPlugin.test_parser_options",
    "test_resource_class.TestResourceClass17.test_set_resource_class",
    "test_resource_provider.TestResourceProvider114.test_resource_provider_list_in_tree",
    "test_trait.TestTrait.test_delete_traits_from_provider",
    "test_usage.TestResourceUsage.test_usage_by_project_id_user_id",
)


class LiveServer(fixtures.Fixture):  # type: ignore[misc]
    """Stands in for the in-process Placement the tests ask for."""

    token = "admin"

    def __init__(self, ledger: str, nursery: Path) -> None:
        super().__init__()
        self.ledger, self.nursery = ledger, nursery

    def _setUp(self) -> None:
        running = server.serving(self.ledger, self.nursery, "default")
        self.endpoint = running.__enter__()
        self.addCleanup(running.__exit__, None, None, None)


def all_tests() -> Iterator[str]:
    package = importlib.import_module(PACKAGE)
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.startswith("test_"):
            found = unittest.defaultTestLoader.loadTestsFromName(f"{PACKAGE}.{module.name}")
            yield from (test.removeprefix(f"{PACKAGE}.") for test in _names(found))


def _names(found: unittest.TestSuite | unittest.TestCase) -> Iterator[str]:
    if isinstance(found, unittest.TestCase):
        yield found.id()
    else:
        for part in found:
            yield from _names(part)


def run_test(name: str, ledger: str, nursery: Path) -> report.Outcome:
    began = time.monotonic()
    result = unittest.TestResult()
    live = functools.partial(LiveServer, ledger, nursery)
    # The command logs all it does to stderr; what matters of it is in the messages of failures.
    quiet = contextlib.redirect_stderr(io.StringIO())
    with mock.patch.object(placement, "PlacementFixture", live), quiet:
        unittest.defaultTestLoader.loadTestsFromName(f"{PACKAGE}.{name}").run(result)
    failures = tuple((name, message) for message in report.failures_of(result).values())
    return report.Outcome(
        name=name,
        passed=result.testsRun - len(failures),
        failures=failures,
        seconds=time.monotonic() - began,
    )


def main() -> int:
    parser = runner.parser("Run osc-placement's functional tests against Dovetail.")
    parser.add_argument("--all", action="store_true", help="not only the chosen tests")
    options = parser.parse_args()
    # One test calls openstack by its name.
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return runner.run(run_test, list(all_tests()) if options.all else CHOSEN, options)


if __name__ == "__main__":
    sys.exit(main())
