"""Replays to be done, one for each workload, policy and seed; side by side on several cores."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from multiprocessing import active_children
from pathlib import Path
from queue import Empty, SimpleQueue

import msgspec

from dovetail.engine.rank.parse import parse_ranking
from dovetail.simulate import arrivals, departures, halves, lines, openb
from dovetail.simulate.errors import BadPlan
from dovetail.simulate.named import BY_STOCK, naming
from dovetail.simulate.outcome import Outcome
from dovetail.simulate.workload import Workload

LOOK_SECONDS = 0.1
"""Between two looks at whether somebody interrupted."""


class Source(msgspec.Struct, frozen=True):
    """Where a workload is written down."""

    fleet: Path
    tasks: Path
    protocol: str

    @property
    def is_openb(self) -> bool:
        return self.fleet.suffix == ".csv"

    def read(self) -> Workload:
        found = self._reader()(self.fleet, self.tasks)
        if not found.tasks:
            raise BadPlan(f"{self.tasks}: no tasks")
        return found

    def _reader(self) -> Callable[[Path, Path], Workload]:
        if self.protocol != "numa":
            return openb.read if self.is_openb else lines.read
        if not self.is_openb:
            raise BadPlan(
                "the protocol numa splits openb nodes; a fleet file says itself what its "
                "hosts are made of: use arrivals"
            )
        return halves.read


class Job(msgspec.Struct, frozen=True, kw_only=True):
    source: Source
    policy: str
    seed: int
    demand: int
    """In percent of capacity, for arrivals; likewise the load, for departures."""
    load: int | None
    named: int = 0
    """Percent of the tasks for which a model is drawn, by this draw."""
    drawn: str = BY_STOCK

    @property
    def workload(self) -> str:
        name = openb.workload_name(self.source.tasks)
        return f"{name}, {self.named}% named ({self.drawn})" if self.named else name

    def run(self) -> Outcome:
        workload, terms = workload_of(self.source), parse_ranking(self.policy)
        if self.named:
            workload = naming(workload, self.named, self.drawn, self.seed)
        if self.source.protocol == "departures":
            return departures.replay(workload, terms, self.seed, self.load)
        return arrivals.replay(workload, terms, self.seed, self.demand)


@lru_cache(maxsize=1)
def workload_of(source: Source) -> Workload:
    """Read once for jobs that follow each other."""
    return source.read()


def run_all(jobs: Sequence[Job], cores: int) -> Iterator[tuple[Job, Outcome]]:
    """As they are finished. An interrupt ends those under way, and is raised then."""
    if min(cores, len(jobs)) == 1:
        yield from ((job, job.run()) for job in jobs)
        return
    with interrupts_noted() as interrupts, workers(min(cores, len(jobs))) as pool:
        finished: SimpleQueue[Future[Outcome]] = SimpleQueue()
        waiting = {pool.submit(Job.run, job): job for job in jobs}
        for each in waiting:
            each.add_done_callback(finished.put)
        while waiting and not interrupts:
            try:
                done = finished.get(timeout=LOOK_SECONDS)
            except Empty:
                continue
            yield waiting.pop(done), done.result()


@contextmanager
def interrupts_noted() -> Iterator[Sequence[int]]:
    """Interrupts of this block: noted as they come, and raised when it is over.

    Raised at once, one could come when a worker is forked and nobody knows of it yet. A mask would
    not hold it off: that is a thread's own, and NumPy has threads that take the signal instead.
    Processes forked in the block note interrupts as well, and go on: they are their parent's.
    """
    noted: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        yield noted  # Whoever started us wants it so.
        return
    signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
        if noted:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def workers(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes that are killed at the end, whatever they do: they leave nothing behind."""
    others = set(active_children())
    pool = ProcessPoolExecutor(count)
    try:
        yield pool
    finally:
        for worker in set(active_children()) - others:
            worker.kill()
        pool.shutdown(cancel_futures=True)
