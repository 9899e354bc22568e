"""The informer's store equals the API's objects, whatever happens to its watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.aio.backoff import Backoff
from dovetail.kube.api.port import ApiError, ApiGone, ApiUnreachable
from dovetail.kube.runtime.informer import Informer, is_newer
from dovetail.podfit.objects import Node, Pod
from tests.support.kube.memory import MemoryApi, failing
from tests.support.kube.virtual import now, run

pytestmark = pytest.mark.virtual_time

Change = tuple[Any, Any]
Running = tuple[Informer[Pod], list[Change]]


def pod(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default", "labels": labels}}


async def settle(informer: Informer[Any], api: MemoryApi) -> None:
    """Until the informer watches and everything sent to it was taken in."""
    for _ in range(2000):
        await asyncio.sleep(0.05)
        if informer._version == str(api.version) and api.watches:
            return
        api.bookmark()
    raise AssertionError("the informer does not come to rest")


@asynccontextmanager
async def running(api: MemoryApi, labels: str = "") -> AsyncIterator[Running]:
    informer = Informer(api, Pod, labels=labels)
    told: list[Change] = []
    informer.on(lambda old, new: told.append((old, new)))
    task = asyncio.create_task(informer.run())
    try:
        await informer.synced()
        yield informer, told
    finally:
        task.cancel()
        await asyncio.wait([task])


def in_words(told: list[Change]) -> list[str]:
    return [
        f"{'-' if new is None else '+' if old is None else '~'}{(new or old).metadata.name}"
        for old, new in told
    ]


async def test_what_is_there_is_told_then_what_changes() -> None:
    api = MemoryApi()
    await api.create(Pod, pod("a"))
    async with running(api) as (informer, told):
        await api.create(Pod, pod("b"))
        await api.merge(Pod, "a", {"metadata": {"labels": {"x": "1"}}}, namespace="default")
        await api.delete(Pod, "b", "default")
        await settle(informer, api)
        assert in_words(told) == ["+a", "+b", "~a", "-b"]
        assert informer.store == api.everything(Pod)


@pytest.mark.parametrize("end", ["cut", "close", "expire"])
async def test_what_was_missed_is_told_after_the_watch_ended(end: str) -> None:
    api = MemoryApi()
    for name in "abc":
        await api.create(Pod, pod(name))
    async with running(api) as (informer, told):
        await settle(informer, api)
        del told[:]
        getattr(api, end)()
        await api.delete(Pod, "a", "default")
        await api.merge(Pod, "b", {"metadata": {"labels": {"x": "1"}}}, namespace="default")
        await api.create(Pod, pod("d"))
        if end == "expire":
            api.compact()
        await settle(informer, api)
        assert sorted(in_words(told)) == ["+d", "-a", "~b"]
        assert informer.store == api.everything(Pod)
        assert api.calls["list", "Pod"] == (2 if end == "expire" else 1)


async def test_a_bookmark_saves_the_list() -> None:
    api = MemoryApi()
    async with running(api) as (informer, _):
        await settle(informer, api)
        await api.create(Node, {"metadata": {"name": "n"}})
        api.bookmark()
        await settle(informer, api)
        api.compact()
        api.close()
        await api.create(Pod, pod("a"))
        await settle(informer, api)
        assert set(informer.store) == {"default/a"}
        assert api.calls["list", "Pod"] == 1


async def test_a_restored_backup_undoes_what_came_after_it() -> None:
    api = MemoryApi()
    for name in "abc":
        await api.create(Pod, pod(name))
    restore = api.backup()
    async with running(api) as (informer, told):
        await api.create(Pod, pod("d"))
        await api.merge(Pod, "b", {"metadata": {"labels": {"x": "1"}}}, namespace="default")
        await api.delete(Pod, "c", "default")
        await settle(informer, api)
        del told[:]
        restore()
        await asyncio.sleep(60)
        assert sorted(in_words(told)) == ["+c", "-d", "~b"]
        assert informer.store == api.everything(Pod)


async def test_a_version_that_comes_again_after_a_restore_is_looked_into() -> None:
    api = MemoryApi()
    await api.create(Pod, pod("a"))
    restore = api.backup()
    async with running(api) as (informer, told):
        await api.merge(Pod, "a", {"metadata": {"labels": {"x": "1"}}}, namespace="default")
        await api.create(Node, {"metadata": {"name": "n"}})
        await settle(informer, api)
        del told[:]
        restore()
        await api.merge(Pod, "a", {"metadata": {"labels": {"x": "2"}}}, namespace="default")
        await asyncio.sleep(60)
        assert in_words(told) == ["~a"]
        assert informer.store == api.everything(Pod)


async def test_an_object_made_anew_under_its_name_is_another_one() -> None:
    api = MemoryApi()
    await api.create(Pod, pod("a"))
    async with running(api) as (informer, told):
        await settle(informer, api)
        api.expire()
        await api.delete(Pod, "a", "default")
        await api.create(Pod, pod("a"))
        api.compact()
        await settle(informer, api)
        assert in_words(told) == ["+a", "-a", "+a"]
        assert told[1][0].metadata.uid != told[2][1].metadata.uid


async def test_what_leaves_the_selection_is_gone() -> None:
    api = MemoryApi()
    await api.create(Pod, pod("a", app="x"))
    async with running(api, labels="app=x") as (informer, told):
        await settle(informer, api)
        await api.merge(Pod, "a", {"metadata": {"labels": {"app": "y"}}}, namespace="default")
        await settle(informer, api)
        assert in_words(told) == ["+a", "-a"]
        assert informer.store == {}


async def test_a_handler_that_fails_stops_nobody() -> None:
    api = MemoryApi()
    informer = Informer(api, Pod)
    told: list[Change] = []

    def fails(old: Pod | None, new: Pod | None) -> None:
        raise ValueError("no")

    informer.on(fails)
    informer.on(lambda old, new: told.append((old, new)))
    task = asyncio.create_task(informer.run())
    await api.create(Pod, pod("a"))
    await settle(informer, api)
    assert in_words(told) == ["+a"]
    late: list[Change] = []
    informer.on(lambda old, new: late.append((old, new)))
    assert in_words(late) == ["+a"]
    task.cancel()


@pytest.mark.parametrize(
    "error",
    [
        lambda: ApiUnreachable("down"),
        lambda: ApiError(500, "InternalError", "etcd is away"),
        lambda: ApiError(429, "TooManyRequests", "later"),
        lambda: ApiGone(410, "Expired", "too old"),
    ],
)
async def test_it_comes_back_ever_more_slowly(error: Callable[[], Exception]) -> None:
    api = MemoryApi()
    api.before = failing(error, {"list", "watch"})
    informer = Informer(api, Pod, backoff=Backoff(0.1, 30))
    task = asyncio.create_task(informer.run())
    await asyncio.sleep(3600)
    tries = api.calls["list", "Pod"]
    assert 120 < tries < 260
    api.before = None
    await api.create(Pod, pod("a"))
    await asyncio.wait_for(informer.synced(), 31)
    assert informer.store == api.everything(Pod)
    task.cancel()


async def test_a_server_that_closes_every_watch_at_once_is_not_hurried() -> None:
    api = MemoryApi()
    async with running(api):

        async def closing(verb: str, kind: Any, name: str) -> None:
            if verb == "watch":
                asyncio.get_running_loop().call_soon(api.close)

        api.before = closing
        api.close()
        before, started = api.calls["watch", "Pod"], now()
        await asyncio.sleep(3600)
        assert api.calls["watch", "Pod"] - before < 300
        assert now() - started >= 3600
        assert api.calls["list", "Pod"] == 1


def test_versions_are_numbers_of_any_length() -> None:
    assert is_newer("10", "9")
    assert not is_newer("9", "10")
    assert not is_newer("9", "9")
    assert is_newer("99999999999999999999999999", "9999999999999999999999999")
    assert is_newer("a", "b")


STEPS = st.one_of(
    st.tuples(st.sampled_from(["put", "put", "change", "delete", "anew"]), st.integers(0, 4)),
    st.tuples(
        st.sampled_from(["cut", "close", "compact", "expire", "bookmark", "fail", "wait"]),
        st.just(0),
    ),
    st.tuples(st.just("repeat"), st.integers(1, 5)),
)


async def step(api: MemoryApi, what: str, number: int) -> None:
    name = f"p{number}"
    there = f"default/{name}" in api.everything(Pod)
    if what in ("put", "change") and not there:
        await api.create(Pod, pod(name))
    elif what in ("put", "change"):
        body = {"metadata": {"labels": {"v": str(api.version)}}}
        await api.merge(Pod, name, body, namespace="default")
    elif what == "delete":
        await api.delete(Pod, name, "default")
    elif what == "anew":
        await api.delete(Pod, name, "default")
        await api.create(Pod, pod(name))
    elif what == "repeat":
        api.repeat(number)
    elif what == "fail":
        api.before = failing(lambda: ApiUnreachable("down"), {"list", "watch"})
        api.cut()
        await asyncio.sleep(1)
        api.before = None
    elif what == "wait":
        await asyncio.sleep(1)
    else:
        getattr(api, what)()


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=40))
def test_store_and_handlers_follow_the_api_through_anything(steps: list[tuple[str, int]]) -> None:
    async def main() -> None:
        api = MemoryApi()
        async with running(api) as (informer, told):
            for what, number in steps:
                await step(api, what, number)
            await settle(informer, api)
            assert informer.store == api.everything(Pod)
            chained(told, informer.store)

    run(main())


def chained(told: list[Change], store: dict[str, Pod]) -> None:
    """Each change of a key begins where the one before ended, changes something, and is newer."""
    last: dict[str, Pod] = {}
    newest: dict[str, int] = {}
    for old, new in told:
        key = (new or old).key
        if new is not None:
            assert int(new.metadata.resource_version) > newest.get(key, 0)
            newest[key] = int(new.metadata.resource_version)
        assert old == last.get(key)
        assert old != new
        if new is None:
            del last[key]
        else:
            assert old is None or old.metadata.uid == new.metadata.uid
            last[key] = new
    assert last == store


async def test_a_version_is_reached_when_all_before_it_was_taken_in() -> None:
    api = MemoryApi()
    async with running(api) as (informer, told):
        await settle(informer, api)
        async with asyncio.timeout(10):
            await informer.reached(str(api.version))
        waiting = asyncio.create_task(informer.reached(str(api.version + 2)))
        await api.create(Pod, pod("first"))
        await settle(informer, api)
        assert not waiting.done()
        await api.create(Pod, pod("second"))
        async with asyncio.timeout(10):
            await waiting
        assert in_words(told) == ["+first", "+second"]


async def test_who_gives_up_waiting_for_a_version_leaves_nothing() -> None:
    api = MemoryApi()
    async with running(api) as (informer, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await informer.reached(str(api.version + 1))
        assert informer._awaited == []
