"""The daemon with stopwatches in it: `python -m bench.agent.watched FILE PROFILE FLAG...`.

Writes to FILE, when it ends, how long each admission took and what of it each part: milliseconds in
which at least one call of the part was under way. With a PROFILE, what Python did goes there.
"""

import cProfile
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from time import perf_counter
from typing import Any

from dovetail.cli.main import main as dovetail
from dovetail.node.admission import pod_admission as admission
from dovetail.node.admission.gate import AdmissionGate
from dovetail.node.hints.merge import merge
from dovetail.node.registry.endpoint import PluginEndpoint
from dovetail.node.sources.directory import ManifestDirectory
from dovetail.node.state.store import StateStore

ADMISSION = "admission"


class Watch:
    """Of one admission."""

    def __init__(self) -> None:
        self.milliseconds: dict[str, float] = {}
        self._under_way: Counter[str] = Counter()
        self._began: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        if not self._under_way[name]:
            self._began[name] = perf_counter()
        self._under_way[name] += 1
        try:
            yield
        finally:
            self._under_way[name] -= 1
            if not self._under_way[name]:
                spent = (perf_counter() - self._began[name]) * 1e3
                self.milliseconds[name] = self.milliseconds.get(name, 0.0) + spent


CURRENT: ContextVar[Watch | None] = ContextVar("watch", default=None)
DONE: list[dict[str, float]] = []


def admissions(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    async def watched(*args: Any) -> Any:
        watch = Watch()
        CURRENT.set(watch)
        with watch.part(ADMISSION):
            answer = await original(*args)
        DONE.append(watch.milliseconds)
        return answer

    return watched


def calls(original: Callable[..., Any], name: Callable[..., str]) -> Callable[..., Any]:
    @wraps(original)
    async def watched(*args: Any) -> Any:
        watch = CURRENT.get()
        if watch is None:
            return await original(*args)
        with watch.part(name(*args)):
            return await original(*args)

    return watched


def merges(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def watched(*args: Any) -> Any:
        watch = CURRENT.get()
        assert watch
        with watch.part("merge"):
            return original(*args)

    return watched


def install() -> None:
    for owner, name, watched in (
        (AdmissionGate, "_admit_pod", admissions(AdmissionGate._admit_pod)),
        (PluginEndpoint, "call", calls(PluginEndpoint.call, lambda _, method, __: method.name)),
        (StateStore, "commit", calls(StateStore.commit, lambda _: "checkpoint")),
        (ManifestDirectory, "pod", calls(ManifestDirectory.pod, lambda *_: "source")),
        (admission, "merge", merges(merge)),
    ):
        setattr(owner, name, watched)


def main(file: str, profile: str, *flags: str) -> None:
    install()
    profiler = cProfile.Profile() if profile else None
    try:
        if profiler:
            profiler.enable()
        dovetail(["agent", *flags])
    finally:
        if profiler:
            profiler.dump_stats(profile)
        Path(file).write_text(json.dumps(DONE))


if __name__ == "__main__":
    main(*sys.argv[1:])
