"""Replays to be done, one for each workload, policy and seed; side by side on several cores."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import lru_cache
from pathlib import Path

import msgspec

from dovetail.engine.rank.parse import parse_ranking
from dovetail.simulate import arrivals, departures, halves, lines, openb
from dovetail.simulate.errors import BadPlan
from dovetail.simulate.outcome import Outcome
from dovetail.simulate.workload import Workload


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

    @property
    def workload(self) -> str:
        return openb.workload_name(self.source.tasks)

    def run(self) -> Outcome:
        workload, terms = workload_of(self.source), parse_ranking(self.policy)
        if self.source.protocol == "departures":
            return departures.replay(workload, terms, self.seed, self.load)
        return arrivals.replay(workload, terms, self.seed, self.demand)


@lru_cache(maxsize=1)
def workload_of(source: Source) -> Workload:
    """Read once for jobs that follow each other."""
    return source.read()


def run_all(jobs: Sequence[Job], cores: int) -> Iterator[tuple[Job, Outcome]]:
    """As they are finished."""
    if min(cores, len(jobs)) == 1:
        yield from ((job, job.run()) for job in jobs)
        return
    with ProcessPoolExecutor(min(cores, len(jobs)), initializer=die_of_interrupts) as pool:
        waiting = {pool.submit(Job.run, job): job for job in jobs}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def die_of_interrupts() -> None:
    """Or Ctrl-C would wait until the replays under way are done."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
