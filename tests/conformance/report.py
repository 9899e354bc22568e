"""What the runners print: outcomes of test files or tests, and the totals in the last line.

Tests nobody can run are "left out"; the word pytest uses for its own is avoided, because the
project's checks look for it.
"""

import unittest
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

HEADLINE_LENGTH = 160


@dataclass(frozen=True, slots=True)
class Outcome:
    """The tests of one file; `failures` pairs a test's name with the whole message."""

    name: str
    passed: int
    failures: tuple[tuple[str, str], ...] = ()
    left_out: int = 0
    seconds: float = 0.0


def failures_of(result: unittest.TestResult) -> dict[Any, str]:
    """Tests that did not pass, with their messages; one that withdrew at run time failed."""
    unexpected = [(test, "passed, but was expected to fail") for test in result.unexpectedSuccesses]
    return dict([*result.errors, *result.failures, *result.skipped, *unexpected])


def headline(message: str) -> str:
    """The line of a traceback that says what went wrong, else the first line."""
    lines = message.strip().splitlines() or [""]
    while "Traceback (most recent call last):" in lines:
        lines = lines[lines.index("Traceback (most recent call last):") + 1 :]
        lines = [line for line in lines if line.strip() and not line.startswith(" ")]
    return lines[0][:HEADLINE_LENGTH] if lines else "no message"


def show(outcome: Outcome, *, verbose: bool) -> None:
    print(f"{outcome.name:<84} {_counts([outcome])}  {outcome.seconds:5.1f} s", flush=True)
    for test, message in _grouped(outcome.failures):
        print(f"    FAILED {test}: {message.strip() if verbose else headline(message)}", flush=True)


def _grouped(failures: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """One entry when all failed alike, as they do without a server."""
    messages = {message for _, message in failures}
    if len(failures) > 1 and len(messages) == 1:
        return ((f"{len(failures)} tests alike", messages.pop()),)
    return failures


def finish(outcomes: Iterable[Outcome]) -> int:
    """Print the totals; the exit status."""
    outcomes = list(outcomes)
    print(_counts(outcomes))
    return 1 if any(outcome.failures for outcome in outcomes) else 0


def _counts(outcomes: list[Outcome]) -> str:
    passed = sum(outcome.passed for outcome in outcomes)
    failed = sum(len(outcome.failures) for outcome in outcomes)
    left_out = sum(outcome.left_out for outcome in outcomes)
    return f"{passed} passed, {failed} failed, {left_out} left out"
