"""Elections: never two leaders, and a new one soon after the old one is gone."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.kube.api.port import ApiUnreachable
from dovetail.kube.runtime.leader import Election, Leader, LeaseTiming
from dovetail.podfit.objects import Lease
from tests.support.kube.memory import MemoryApi
from tests.support.kube.virtual import now, run

pytestmark = pytest.mark.virtual_time


class Slow:
    """The API as one replica reaches it: away, or slow in one direction or the other."""

    def __init__(self, api: MemoryApi) -> None:
        self._api = api
        self.there: Callable[[], float] = lambda: 0.0
        self.back: Callable[[], float] = lambda: 0.0
        self.away = False

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any, **named: Any) -> Any:
            if self.away:
                raise ApiUnreachable("away")
            await asyncio.sleep(self.there())
            answer = await getattr(self._api, name)(*arguments, **named)
            await asyncio.sleep(self.back())
            return answer

        return call


class Replica:
    def __init__(self, api: MemoryApi, name: str) -> None:
        self.api = Slow(api)
        self.skew = 0.0
        self.election = Election(
            self.api,
            "default",
            "test",
            name,
            clock=lambda: now() + self.skew,
        )
        self.told: list[bool] = []
        self.election.on(self.told.append)
        self.task = asyncio.create_task(self.election.run())

    @property
    def leading(self) -> bool:
        return self.election.leading

    def kill(self) -> None:
        """It is not there to give anything back."""
        self.api.away = True
        self.task.cancel()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_the_first_leads_the_second_waits_and_takes_over_when_it_is_gone() -> None:
    api = MemoryApi()
    one = Replica(api, "one")
    await asyncio.sleep(1)
    two = Replica(api, "two")
    await asyncio.sleep(100)
    assert (one.leading, two.leading) == (True, False)
    assert two.election.leader == "one"

    killed = now()
    one.kill()
    await until(lambda: two.leading)
    assert 12 <= now() - killed <= 15 + 2 * 2.4
    lease = await api.get(Lease, "test", "default")
    assert lease.spec.holder_identity == "two"
    assert lease.spec.lease_transitions == 2
    await two.stop()


async def test_one_that_stops_gives_the_lease_back() -> None:
    api = MemoryApi()
    one = Replica(api, "one")
    await asyncio.sleep(1)
    two = Replica(api, "two")
    await asyncio.sleep(10)
    await one.stop()
    assert one.told == [True, False]
    assert not one.leading
    assert (await api.get(Lease, "test", "default")).spec.holder_identity == ""
    await asyncio.sleep(2.5)
    assert two.leading
    await two.stop()


async def test_one_that_does_not_lead_leaves_the_lease_alone_when_it_stops() -> None:
    api = MemoryApi()
    one = Replica(api, "one")
    await asyncio.sleep(1)
    two = Replica(api, "two")
    await asyncio.sleep(10)
    await two.stop()
    assert (await api.get(Lease, "test", "default")).spec.holder_identity == "one"
    await one.stop()


async def test_a_lease_that_was_deleted_is_not_free_at_once() -> None:
    api = MemoryApi()
    one = Replica(api, "one")
    await asyncio.sleep(1)
    two = Replica(api, "two")
    await asyncio.sleep(20)
    one.api.away = True
    await api.delete(Lease, "test", "default")
    await until(lambda: two.leading or not one.leading)
    assert not two.leading
    await until(lambda: two.leading)
    await two.stop()
    one.kill()


async def test_cut_off_it_stops_leading_in_time_and_leads_again_when_it_is_back() -> None:
    api = MemoryApi()
    one = Replica(api, "one")
    await asyncio.sleep(20)
    cut = now()
    one.api.away = True
    await until(lambda: not one.told[-1])
    assert now() - cut <= 10.1
    assert not one.leading
    await asyncio.sleep(60)
    one.api.away = False
    await asyncio.sleep(3)
    assert one.told == [True, False, True]
    await one.stop()


async def test_a_pause_of_the_process_is_noticed_before_anything_else_runs() -> None:
    api = MemoryApi()
    one = Replica(api, "one")
    await asyncio.sleep(20)
    assert one.leading
    one.skew += 11
    assert not one.leading
    assert one.told == [True]
    await one.stop()


@pytest.mark.parametrize("year", ["1970", "9999"])
async def test_what_other_clocks_say_does_not_matter(year: str) -> None:
    api = MemoryApi()
    at = f"{year}-01-01T00:00:00.000000Z"
    spec = {"holderIdentity": "other", "renewTime": at, "leaseDurationSeconds": 15}
    await api.create(Lease, {"metadata": {"name": "test"}, "spec": spec}, namespace="default")
    one = Replica(api, "one")
    started = now()
    await until(lambda: one.leading)
    assert 15 <= now() - started <= 15 + 2.4
    await one.stop()


async def test_an_answer_that_is_lost_costs_nothing() -> None:
    api = MemoryApi()
    one = Replica(api, "one")
    await asyncio.sleep(20)
    one.api.back = lambda: 60.0
    await asyncio.sleep(6)
    one.api.back = lambda: 0.0
    await asyncio.sleep(60)
    assert one.told == [True]
    await one.stop()


async def test_a_lease_that_is_taken_away_or_deleted_is_noticed_at_the_next_renewal() -> None:
    api = MemoryApi()
    one = Replica(api, "one")
    await asyncio.sleep(20)
    taken = {"spec": {"holderIdentity": "thief", "renewTime": "now"}}
    await api.merge(Lease, "test", taken, namespace="default")
    await asyncio.sleep(2.5)
    assert not one.leading
    await asyncio.sleep(20)
    assert one.leading
    await api.delete(Lease, "test", "default")
    await asyncio.sleep(20)
    assert one.leading
    assert (await api.get(Lease, "test", "default")).spec.holder_identity == "one"
    await one.stop()


@pytest.mark.parametrize("seconds", [(10, 10, 2), (15, 2, 2), (15, 10, 0)])
def test_times_that_would_make_two_leaders_are_refused(seconds: tuple[float, ...]) -> None:
    lease, renew, retry = seconds
    with pytest.raises(ValueError, match="must be longer"):
        LeaseTiming(lease=lease, renew=renew, retry=retry)


TROUBLE = st.tuples(
    st.integers(0, 2),
    st.sampled_from(
        ["away", "back", "slow", "late answers", "pause", "restart", "stop", "nothing"]
    ),
    st.floats(0.1, 30),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(TROUBLE, max_size=25), st.integers(0, 1000))
def test_there_are_never_two_leaders(troubles: list[tuple[int, str, float]], seed: int) -> None:
    async def main() -> None:
        api = MemoryApi()
        chance = random.Random(seed)
        replicas = [Replica(api, f"replica-{n}") for n in range(3)]
        everyone = list(replicas)

        async def never_two() -> None:
            while True:
                assert sum(each.leading for each in everyone) <= 1
                await asyncio.sleep(0.25)

        watching = asyncio.create_task(never_two())
        for number, (n, what, seconds) in enumerate(troubles):
            one = replicas[n]
            if what in ("away", "back"):
                one.api.away = what == "away"
            elif what == "slow":
                one.api.there = lambda: chance.uniform(0, 8)
            elif what == "late answers":
                one.api.back = lambda: chance.uniform(0, 8)
            elif what == "pause" and one.leading:
                one.skew += seconds
            elif what in ("restart", "stop"):
                one.kill() if what == "restart" else await one.stop()
                replicas[n] = Replica(api, f"replica-{n}-{number}")
                everyone.append(replicas[n])
            await asyncio.sleep(seconds)
            assert not watching.done() or watching.result()
        for each in replicas:
            each.api.away = False
            each.api.there = each.api.back = lambda: 0.0
        await asyncio.sleep(60)
        assert sum(each.leading for each in replicas) == 1
        watching.cancel()
        for each in replicas:
            await each.stop()

    run(main())


class Term:
    """Work of a leader that writes down when it began and ended, and takes a while to end."""

    def __init__(self) -> None:
        self.log: list[str] = []

    async def work(self) -> None:
        self.log.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.5)
            self.log.append("ended")


async def test_work_is_done_while_leading_and_begun_anew_with_each_term() -> None:
    api = Slow(MemoryApi())
    leader = Leader(Election(api, "default", "test", "only", clock=now))
    term = Term()
    tasks = [
        asyncio.create_task(leader.run_while_leading(term.work)),
        asyncio.create_task(leader.run()),
    ]
    await asyncio.sleep(5)
    assert (leader.leading, term.log) == (True, ["begun"])
    api.away = True
    await asyncio.sleep(20)
    assert (leader.leading, term.log) == (False, ["begun", "ended"])
    api.away = False
    await asyncio.sleep(40)
    assert (leader.leading, term.log) == (True, ["begun", "ended", "begun"])
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert term.log[-1] == "ended"


async def test_work_that_fails_is_told_and_work_that_ends_waits_for_the_next_term() -> None:
    begun = 0

    async def ending() -> None:
        nonlocal begun
        begun += 1

    async def failing() -> None:
        raise RuntimeError("a fault")

    task = asyncio.create_task(Leader().run_while_leading(ending))
    await asyncio.sleep(1)
    assert begun == 1
    assert not task.done()
    task.cancel()
    with pytest.raises(RuntimeError, match="a fault"):
        await Leader().run_while_leading(failing)


def test_whoever_has_no_election_leads() -> None:
    assert Leader().leading
