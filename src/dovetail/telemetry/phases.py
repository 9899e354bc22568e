"""Phases of a request: each is timed, and is a span where spans are on."""

from __future__ import annotations

from contextlib import AbstractContextManager
from time import perf_counter
from types import TracebackType
from typing import Any, Literal, get_args

from dovetail.telemetry.metrics import METRICS, SECONDS
from dovetail.telemetry.tracing import TRACING

PhaseName = Literal["parse", "snapshot", "suppose", "explain", "search", "encode", "read", "write"]

PHASES = METRICS.histogram(
    "phase_duration_seconds", "Where requests spend their time.", SECONDS, "phase"
)
OBSERVERS = {name: PHASES.labels(name).observe for name in get_args(PhaseName)}


class phase:  # noqa: N801
    """`with phase("search"): ...`, a class because that costs half of a generator."""

    __slots__ = ("_name", "_span", "_started")

    def __init__(self, name: PhaseName) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._span: AbstractContextManager[Any] | None = None
        if TRACING.on:
            self._span = TRACING.phase(self._name)
            self._span.__enter__()
        self._started = perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        OBSERVERS[self._name](perf_counter() - self._started)
        if self._span is not None:
            self._span.__exit__(kind, error, traceback)
