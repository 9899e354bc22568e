"""The map of the fleet says what the API says of each provider, and tells what changes."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Any

import orjson
import pytest
from starlette.datastructures import Headers

from dovetail.rest.auth.identity import Identity
from dovetail.rest.dovetail.views import fleet_map
from dovetail.service.fleet_map import following
from dovetail.service.fleet_map.trail import FleetTrail
from tests.rest.client import Client
from tests.rest.fleets import load, numa_hosts, tree, uid

MAP = "/dovetail/v1/map"
CLASSES = ("VCPU", "MEMORY_MB", "FPGA", "SRIOV_NET_VF", "DISK_GB")
HOSTILE = "<b>\u202eevil\U0001f600-" + "x" * 150


def the_map(client: Client) -> Any:
    answer = client.get(MAP)
    assert answer.status_code == 200
    return answer.json()


def claim(client: Client, consumer: str, provider: str, **amounts: int) -> None:
    body = {
        "allocations": {uid(provider): {"resources": amounts}},
        "project_id": "lab",
        "user_id": "mia",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    answer = client.call("PUT", f"/allocations/{uid(consumer)}", body)
    assert answer.status_code == 204, answer.text


def random_fleet(choice: random.Random) -> list[dict[str, Any]]:
    """Trees of any depth, with any inventories, some of them all reserved."""

    def made(name: str, depth: int) -> dict[str, Any]:
        inventories = {
            each: {"total": choice.randint(1, 50), "reserved": choice.choice((0, 0, 1))}
            for each in choice.sample(CLASSES, choice.randint(0, 3))
        }
        children = [made(f"{name}_{n}", depth - 1) for n in range(choice.randint(0, depth))]
        return tree(name, *children, inventories=inventories)

    return [made(f"rack{choice.randint(1, 3)}-host{n}", 3) for n in range(12)]


def providers(client: Client, host: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"/resource_providers?in_tree={host}").json()[
        "resource_providers"
    ]
    return found


@pytest.mark.parametrize("seed", range(4))
def test_it_says_what_the_api_says_of_each_provider(client: Client, seed: int) -> None:
    choice = random.Random(seed)
    load(client, *random_fleet(choice))
    before = the_map(client)
    for at in choice.sample(range(len(before["lanes"]["host"])), 6):
        short, host = (
            before["lanes"]["name"][at],
            before["hosts"]["name"][before["lanes"]["host"][at]],
        )
        name = f"{host}_{short}" if short else host
        if before["lanes"]["capacity"][at] > 0:
            claim(client, f"c{at}", name, **{before["classes"][before["lanes"]["class"][at]]: 1})
    found = the_map(client)
    assert found["layout"] == before["layout"]
    lanes, classes = found["lanes"], found["classes"]
    for host, uuid in enumerate(found["hosts"]["uuid"]):
        told: dict[tuple[str, str], tuple[int, int]] = {}
        for each in providers(client, uuid):
            place = f"/resource_providers/{each['uuid']}"
            has = client.get(f"{place}/inventories").json()["inventories"]
            used = client.get(f"{place}/usages").json()["usages"]
            short = each["name"].removeprefix(found["hosts"]["name"][host]).lstrip("_")
            for name, one in has.items():
                told[short, name] = (one["total"] - one["reserved"], used[name])
        mine = [n for n, of in enumerate(lanes["host"]) if of == host]
        shown = {
            (lanes["name"][n], classes[lanes["class"][n]]): (lanes["capacity"][n], lanes["used"][n])
            for n in mine
        }
        assert shown == told
        for name in classes:
            amounts = [pair for (_, of), pair in told.items() if of == name]
            assert found["capacity"][name][host] == sum(capacity for capacity, _ in amounts)
            assert found["used"][name][host] == sum(used for _, used in amounts)
    usage = client.get("/dovetail/v1/usage").json()["classes"]
    assert {name: one["used"] for name, one in found["totals"]["classes"].items()} == {
        name: one["used"] for name, one in usage.items() if name in classes
    }


def test_hosts_are_grouped(client: Client) -> None:
    load(
        client,
        tree("rack1-a", inventories={"VCPU": 4}),
        tree("rack1-b", inventories={"VCPU": 4}, aggregates=[uid("agg")]),
        tree("alone", inventories={"VCPU": 4}),
    )
    place = f"/dovetail/v1/providers/{uid('alone')}/attributes"
    told = {"rack": "r9", "pool": "gold"}
    generation = client.get(place).json()["resource_provider_generation"]
    body = {"attributes": told, "resource_provider_generation": generation}
    answer = client.call("PUT", place, body)
    assert answer.status_code == 200, answer.text
    found = the_map(client)
    groups = found["groups"]
    assert (groups["rack"], found["hosts"]["group"]["rack"]) == (["rack1", "r9"], [0, 0, 1])
    assert (groups["aggregate"], found["hosts"]["group"]["aggregate"]) == (
        [uid("agg")],
        [-1, 0, -1],
    )
    assert (groups["pool"], found["hosts"]["group"]["pool"]) == (["gold"], [-1, -1, 0])


def test_hosts_that_take_nothing_are_told_apart(client: Client) -> None:
    load(
        client,
        tree("well", inventories={"VCPU": 4}),
        tree("disabled", inventories={"VCPU": 4}, traits=["COMPUTE_STATUS_DISABLED"]),
        tree("reserved", inventories={"VCPU": {"total": 4, "reserved": 4}}),
        tree("empty"),
    )
    assert the_map(client)["hosts"]["state"] == [0, 1, 1, 2]


def test_lanes_say_what_they_are_of(client: Client) -> None:
    load(client, *numa_hosts(1))
    found = the_map(client)
    kinds = {
        found["classes"][class_]: found["kinds"][kind]
        for class_, kind in zip(found["lanes"]["class"], found["lanes"]["kind"], strict=True)
    }
    assert kinds == {
        "VCPU": "numa",
        "MEMORY_MB": "numa",
        "FPGA": "fpga",
        "SRIOV_NET_VF": "nic",
        "DISK_GB": "host",
    }


def test_fragmentation_is_what_lies_free_in_units_partly_in_use(client: Client) -> None:
    load(client, *numa_hosts(2))
    assert the_map(client)["fragmentation"] == [0, 0]
    claim(client, "a", "h0n0", VCPU=4)
    # Of 12 free VCPUs, 4 are on a NUMA node that somebody uses.
    assert the_map(client)["fragmentation"] == [33, 0]
    claim(client, "b", "h0n1", VCPU=1)
    assert the_map(client)["fragmentation"] == [100, 0]


def test_names_are_as_they_are(client: Client) -> None:
    load(client, tree(HOSTILE, inventories={"VCPU": 1}))
    assert the_map(client)["hosts"]["name"] == [HOSTILE]


def test_a_new_name_is_seen(client: Client) -> None:
    load(client, tree("old", inventories={"VCPU": 1}))
    assert the_map(client)["hosts"]["name"] == ["old"]
    client.call("PUT", f"/resource_providers/{uid('old')}", {"name": "new"})
    assert the_map(client)["hosts"]["name"] == ["new"]


def test_what_did_not_change_is_not_sent_again(client: Client) -> None:
    load(client, *numa_hosts(2))
    first = client.get(MAP)
    assert first.json()["version"] in first.headers["etag"]
    assert client.get(MAP, if_none_match=first.headers["etag"]).status_code == 304
    weakened = f'"other", W/{first.headers["etag"]}'
    assert client.get(MAP, if_none_match=weakened).status_code == 304
    claim(client, "a", "h0n0", VCPU=4)
    assert client.get(MAP, if_none_match=first.headers["etag"]).status_code == 200


@pytest.mark.parametrize(
    ("accepted", "is_packed"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("*", True),
        ("identity", False),
        ("gzip;q=0, *", False),
        ("", False),
    ],
)
def test_it_is_compressed_for_those_who_accept_it(
    client: Client, accepted: str, is_packed: bool
) -> None:
    load(client, *numa_hosts(20))
    plain = client.get(MAP, accept_encoding="identity")
    found = client.get(MAP, accept_encoding=accepted or "identity;q=1")
    assert found.headers.get("content-encoding") == ("gzip" if is_packed else None)
    assert (found.headers["etag"] != plain.headers["etag"]) == is_packed
    assert (int(found.headers["content-length"]) < len(plain.content) / 4) == is_packed
    for answer in (plain, found):
        assert "accept-encoding" in answer.headers["vary"]
    assert found.json() == plain.json()


def test_tags_are_of_one_encoding(client: Client) -> None:
    load(client, *numa_hosts(2))
    codings = ("gzip", "identity")
    tags = [client.get(MAP, accept_encoding=each).headers["etag"] for each in codings]
    for coding, own, other in zip(codings, tags, reversed(tags), strict=True):
        seen = client.get(MAP, accept_encoding=coding, if_none_match=own)
        assert (seen.status_code, seen.content) == (304, b"")
        assert (seen.headers["etag"], "content-encoding" in seen.headers) == (own, False)
        assert client.get(MAP, accept_encoding=coding, if_none_match=other).status_code == 200


def test_it_is_compressed_once_for_all_and_off_the_event_loop(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(client, *numa_hosts(2))
    threads: list[int] = []
    compress = fleet_map.compressed

    def noted(pieces: list[bytes]) -> list[bytes]:
        threads.append(threading.get_ident())
        return compress(pieces)

    monkeypatch.setattr(fleet_map, "compressed", noted)

    async def ask_at_once() -> set[bytes]:
        calls = (client.send("GET", MAP, accept_encoding="gzip") for _ in range(8))
        return {answer.content for answer in await asyncio.gather(*calls)}

    assert len(client.run(ask_at_once())) == 1
    assert len(threads) == 1
    assert threads != [threading.get_ident()]


def test_the_same_fleet_has_the_same_version_everywhere(client: Client, serve: Any) -> None:
    load(client, *numa_hosts(2))
    assert the_map(client)["version"] == the_map(serve())["version"]


def test_it_is_the_policy_s_to_allow(client: Client) -> None:
    assert client.get(MAP, x_auth_token="mia").status_code == 403
    assert client.get(f"{MAP}/events", x_auth_token="mia").status_code == 403


# -- events --------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def quick(client: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.01)
    yield
    client.run(client.application._backend.fleet.close())


async def stream(client: Client) -> AsyncIterator[bytes]:
    """The events of a stream, as the handler gives them."""
    fleet = client.application._backend.fleet
    follower = fleet.join("mia")
    async for part in fleet_map.told(follower, await fleet.maps.now(), nothing_ended):
        yield part


async def nothing_ended() -> None:
    """Whoever came in may stay."""


async def the_next(events: AsyncIterator[bytes]) -> tuple[str, Any]:
    text = await asyncio.wait_for(anext(events), 30)
    head, data = text.decode().strip().split("\n")
    return head.removeprefix("event: "), orjson.loads(data.removeprefix("data: "))


def test_changes_are_told(client: Client) -> None:
    load(client, *numa_hosts(2))
    before = the_map(client)

    async def watch() -> list[tuple[str, Any]]:
        events = stream(client)
        seen = [await the_next(events)]
        waiting = asyncio.ensure_future(the_next(events))
        await asyncio.sleep(0.1)
        await client.send("PUT", f"/allocations/{uid('a')}", BODY)
        seen.append(await waiting)
        waiting = asyncio.ensure_future(the_next(events))
        await asyncio.sleep(0.1)
        await client.send("PUT", f"/resource_providers/{uid('h1')}", {"name": "other"})
        seen.append(await waiting)
        return seen

    hello, change, reload = client.run(watch())
    assert hello == ("hello", {"version": before["version"], "layout": before["layout"]})
    assert change[0] == "change"
    assert change[1]["hosts"] == [0]
    assert change[1]["used"]["VCPU"] == [4]
    (at,) = change[1]["lanes"]["at"]
    assert change[1]["lanes"]["used"] == [4]
    assert (before["lanes"]["name"][at], before["lanes"]["class"][at]) == ("n0", 0)
    assert reload[0] == "reload"
    assert reload[1]["version"] == the_map(client)["version"]


BODY = {
    "allocations": {uid("h0n0"): {"resources": {"VCPU": 4}}},
    "project_id": "lab",
    "user_id": "mia",
    "consumer_generation": None,
    "consumer_type": "INSTANCE",
}


def test_all_who_follow_get_the_same_bytes(client: Client) -> None:
    load(client, *numa_hosts(2))

    async def watch() -> list[bytes]:
        streams = [stream(client) for _ in range(3)]
        for each in streams:
            await anext(each)
        waiting = [asyncio.ensure_future(anext(each)) for each in streams]
        await asyncio.sleep(0.1)
        await client.send("PUT", f"/allocations/{uid('a')}", BODY)
        return await asyncio.wait_for(asyncio.gather(*waiting), 30)

    first, *others = client.run(watch())
    assert all(each is first for each in others)


def test_changes_lead_on_from_whatever_was_shown(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also from a state that was there for a moment only, in which a lane was taken that is free
    again at the next look."""
    monkeypatch.setattr(following, "LOOK_SECONDS", 3600)
    load(client, *numa_hosts(2))
    a, b = f"/allocations/{uid('a')}", f"/allocations/{uid('b')}"
    other = {**BODY, "allocations": {uid("h1n0"): {"resources": {"VCPU": 2}}}}

    async def watch() -> tuple[list[Any], Any]:
        fleet = client.application._backend.fleet
        events = stream(client)
        await the_next(events)
        shown = [(await client.send("GET", MAP)).json()]
        for step in (("PUT", a, BODY), ("DELETE", a), ("PUT", b, other)):
            await client.send(*step)
            shown.append((await client.send("GET", MAP)).json())
        fleet._tell()
        return shown, (await the_next(events))[1]

    shown, change = client.run(watch())
    now = shown.pop()
    assert change["version"] == now["version"]
    assert set(change["from"]) == {each["version"] for each in shown}
    for each in shown:
        used = each["lanes"]["used"]
        for at, amount in zip(change["lanes"]["at"], change["lanes"]["used"], strict=True):
            used[at] = amount
        assert used == now["lanes"]["used"]


def test_a_change_right_after_the_first_state_is_told(client: Client) -> None:
    load(client, *numa_hosts(2))

    async def watch() -> Any:
        events = stream(client)
        hello = await the_next(events)
        # Before anybody waits for what comes next.
        await client.send("PUT", f"/allocations/{uid('a')}", BODY)
        await client.send("GET", MAP)
        name, change = await the_next(events)
        assert name == "change"
        assert hello[1]["version"] in change["from"]
        return change["version"]

    assert client.run(watch()) == the_map(client)["version"]


def test_whoever_does_not_keep_up_is_let_go(client: Client) -> None:
    load(client, *numa_hosts(2))

    async def watch() -> int:
        fleet = client.application._backend.fleet
        follower = fleet.join("mia")
        assert len(fleet) == 1
        now = await fleet.maps.now()
        for _ in range(following.MOST_WAITING + 2):
            follower.tell(following.FleetChange(FleetTrail(now)))
        assert [each async for each in follower.changes()] == []
        return len(fleet)

    assert client.run(watch()) == 0


def test_nobody_looks_where_nobody_follows(client: Client) -> None:
    async def watch() -> bool:
        fleet = client.application._backend.fleet
        events = stream(client)
        await anext(events)
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.1)
        looking = fleet._looking
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await asyncio.sleep(0.1)
        return looking is not None and looking.done()

    assert client.run(watch())


@pytest.mark.parametrize(("bound", "status"), [("MOST_FOLLOWERS", 503), ("MOST_OF_ONE_USER", 429)])
def test_streams_are_bounded_however_many_come_at_once(
    client: Client, monkeypatch: pytest.MonkeyPatch, bound: str, status: int
) -> None:
    monkeypatch.setattr(following, bound, 3)
    fleet = client.application._backend.fleet

    async def come_at_once() -> tuple[set[int], int, int]:
        streams = [asyncio.ensure_future(client.send("GET", f"{MAP}/events")) for _ in range(5)]
        refused = [(await each).status_code for each in islice(asyncio.as_completed(streams), 2)]
        open_ = len(fleet)
        for each in streams:
            each.cancel()
        await asyncio.gather(*streams, return_exceptions=True)
        return set(refused), open_, len(fleet)

    assert client.run(come_at_once()) == ({status}, 3, 0)


def test_other_users_have_streams_of_their_own(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MOST_OF_ONE_USER", 1)

    async def come() -> int:
        fleet = client.application._backend.fleet
        kept = [fleet.join("mia"), fleet.join("ann")]
        with pytest.raises(following.TooManyFollowers):
            fleet.join("ann")
        kept.pop()
        kept.append(fleet.join("ann"))
        return len(fleet)

    assert client.run(come()) == 2


class Tokens:
    """Good until they are revoked."""

    challenges = ("Bearer",)

    def __init__(self) -> None:
        self.roles: dict[str, frozenset[str]] = {}
        self.asked: Counter[str] = Counter()
        self.was_asked_again = asyncio.Event()

    async def identify(self, headers: Headers) -> Identity | None:
        token = headers["x-auth-token"]
        self.asked[token] += 1
        if self.asked["mia"] > 1:
            self.was_asked_again.set()
        return Identity(token, None, self.roles[token]) if token in self.roles else None

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("left", [None, frozenset({"reader"})])
def test_a_stream_ends_with_the_right_to_it(
    serve: Any, monkeypatch: pytest.MonkeyPatch, left: frozenset[str] | None
) -> None:
    """Whether the token or a role is gone, and however much there is to tell meanwhile."""
    monkeypatch.setattr(following, "HEARTBEAT_SECONDS", 0.2)
    tokens = Tokens()
    tokens.roles = {"admin": frozenset({"admin"}), "mia": frozenset({"admin"})}
    client: Client = serve(authenticator=tokens)
    load(client, *numa_hosts(2))
    fleet = client.application._backend.fleet

    async def watch() -> bytes:
        hearing = asyncio.ensure_future(client.send("GET", f"{MAP}/events", x_auth_token="mia"))
        await asyncio.wait_for(tokens.was_asked_again.wait(), 30)
        assert len(fleet) == 1
        if left is None:
            del tokens.roles["mia"]
        else:
            tokens.roles["mia"] = left
        place = f"/allocations/{uid('a')}"
        while not hearing.done():
            await client.send("PUT", place, BODY)
            await client.send("DELETE", place)
        return (await hearing).content

    said = client.run(watch())
    assert said.startswith(b"event: hello")
    assert len(fleet) == 0
    client.run(fleet.close())
