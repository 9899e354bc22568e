"""All controllers are asked at once; whoever does not answer is told, and its policy counts."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from itertools import permutations
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from dovetail.intents.candidates.cluster_set import ClusterSet
from dovetail.intents.candidates.partitions import PartitionCandidates
from dovetail.intents.controllers import ControllerSpec, Roster
from dovetail.intents.fleet import FleetSnapshot
from dovetail.intents.group import AppAffinityRule, DeploymentGroup
from dovetail.ledger import Ledger
from dovetail.service.intents.controllers.fan_out import ControllerFailure
from dovetail.service.intents.controllers.metrics import CALLS
from dovetail.telemetry.tracing import TRACING
from dovetail.wire.client import TlsIdentity
from tests.service.intents.controllers.protos import Handler, server
from tests.service.intents.controllers.rig import (
    CANDIDATES,
    HPA_SAYS,
    Check,
    Found,
    allowing,
    asked,
    call,
    controller,
    fan_out,
    hang,
    listener,
    saying,
)
from tests.support.intents.scenario import ANALYTICS, C1, C2, C4, FWALL, base
from tests.support.kube.pki import Authority
from tests.support.processes import reserved_port

SOON = 0.3
"""A deadline, in seconds, that a test waits for."""


def only(failures: tuple[ControllerFailure, ...]) -> ControllerFailure:
    (found,) = failures
    return found


class TestAnswers:
    async def test_built_in_ones_are_always_asked(self, kept: Ledger) -> None:
        with fan_out(kept) as controllers:
            answers = await asked(controllers)
        assert [each.controller for each in answers.answers] == ["affinity", "generic", "hpa"]
        assert answers.hpa is HPA_SAYS
        assert not answers.failures

    async def test_what_has_answered_may_be_asked_on(self, kept: Ledger) -> None:
        """Placements and explanations are worked out of the answer later, with the same check."""
        checks: list[Check] = []

        def hpa(_: DeploymentGroup, __: FleetSnapshot, check: Check) -> Found:
            checks.append(check)
            return HPA_SAYS

        with fan_out(kept, hpa=hpa) as controllers:
            await asked(controllers)
            checks[0]()

    async def test_all_are_asked_at_once(self, kept: Ledger) -> None:
        """Each answers only when all have been asked."""
        everybody = asyncio.Barrier(3)

        async def answer(_: bytes) -> bytes:
            await everybody.wait()
            return allowing(FWALL, C1)

        async with controller(answer) as port:
            with fan_out(kept) as controllers:
                answers = await asked(controllers, *(call(name, port) for name in "abc"))
        assert not answers.failures
        assert len(answers.answers) == 6

    async def test_the_order_of_answers_never_matters(self, kept: Ledger) -> None:
        """Whoever of three is first, second or last."""
        names = ("a", "b", "c")
        found = []
        for order in permutations(names):
            gates = {name: asyncio.Event() for name in names}

            def after(
                name: str, order: tuple[str, ...], gates: dict[str, asyncio.Event]
            ) -> Handler:
                async def answer(_: bytes) -> bytes:
                    before = order.index(name) - 1
                    if before >= 0:
                        await gates[order[before]].wait()
                    gates[name].set()
                    return allowing(FWALL, {"a": C1, "b": C2, "c": C4}[name])

                return answer

            async with AsyncExitStack() as stack:
                ports = [
                    await stack.enter_async_context(controller(after(name, order, gates)))
                    for name in names
                ]
                with fan_out(kept) as controllers:
                    found.append(await asked(controllers, *map(call, names, ports)))
        assert all(each == found[0] for each in found)
        assert [each.controller for each in found[0].answers] == [
            *("a", "affinity", "b", "c", "generic", "hpa")
        ]

    async def test_what_an_external_one_says_is_checked_and_typed(self, kept: Ledger) -> None:
        async with controller(saying(allowing(FWALL, C1, C2))) as port:
            with fan_out(kept) as controllers:
                answers = await asked(controllers, call("region", port))
        (region,) = (each for each in answers.answers if each.controller == "region")
        assert isinstance(region.candidates, PartitionCandidates)
        (candidate,) = region.candidates.alternatives
        assert candidate[FWALL].parts[0].clusters == ClusterSet.allow({C1, C2})


class TestDeadlines:
    async def test_v9_hpa_times_out(self, kept: Ledger) -> None:
        """The generic answer is there, and is not enough."""
        ended = threading.Event()

        def slow(_: DeploymentGroup, __: FleetSnapshot, check: Check) -> Found:
            try:
                while True:
                    check()
                    time.sleep(0.01)
            finally:
                ended.set()

        stands_for_it = ControllerSpec(host="h", port=1, deadline=SOON)
        with fan_out(kept, hpa=slow) as controllers:
            answers = await asked(controllers, hpa=stands_for_it)
        assert await asyncio.to_thread(ended.wait, 30), "nobody waits, and it goes on"
        assert [each.controller for each in answers.answers] == ["affinity", "generic"]
        assert answers.hpa is None
        refusal = only(answers.refusals)
        assert (refusal.controller, refusal.token) == ("hpa", "timed_out")
        assert refusal.words == (
            "controller hpa (deadline 0.3 s): it did not answer in time; "
            "nothing is placed without it"
        )

    async def test_one_hangs_and_the_others_are_heard(self, kept: Ledger) -> None:
        async with listener(hang) as silent, controller(saying(allowing(FWALL, C1))) as port:
            with fan_out(kept) as controllers:
                answers = await asked(
                    controllers, call("silent", silent, deadline=SOON), call("region", port)
                )
        assert "region" in {each.controller for each in answers.answers}
        assert only(answers.refusals).words.startswith("controller silent (deadline 0.3 s): it did")

    async def test_one_that_answers_late_is_cancelled(self, kept: Ledger) -> None:
        cancelled = asyncio.Event()

        async def late(_: bytes) -> bytes:
            try:
                await asyncio.sleep(60)
            finally:
                cancelled.set()
            return allowing(FWALL, C1)

        async with controller(late) as port:
            with fan_out(kept) as controllers:
                answers = await asked(controllers, call("late", port, deadline=SOON))
            assert only(answers.refusals).token == "timed_out"
            await cancelled.wait()

    async def test_one_dies_in_the_middle_of_the_call(self, kept: Ledger) -> None:
        dying = asyncio.Event()

        async def never(_: bytes) -> bytes:
            dying.set()
            await asyncio.sleep(60)
            return b""

        async with AsyncExitStack() as stack:
            port = await stack.enter_async_context(server({CANDIDATES: never}))
            with fan_out(kept) as controllers:
                asking = asyncio.create_task(asked(controllers, call("dying", port)))
                await dying.wait()
                await stack.aclose()
                answers = await asking
        assert only(answers.refusals).token in ("unreachable", "failed")

    async def test_nobody_is_there(self, kept: Ledger) -> None:
        with reserved_port() as port, fan_out(kept) as controllers:
            answers = await asked(controllers, call("gone", port))
        assert only(answers.refusals).token == "unreachable"


class TestPolicies:
    async def test_ignored_and_told(self, kept: Ledger) -> None:
        with reserved_port() as port, fan_out(kept) as controllers:
            answers = await asked(controllers, call("gone", port, onFailure="ignore"))
        assert not answers.refusals
        failure = only(answers.failures)
        assert failure.words.endswith("left out, by its policy")

    async def test_the_last_answer_counts_for_its_group_and_apps(self, ledger: Ledger) -> None:
        spec = {"onFailure": "lastAnswer"}
        scenario = base()
        with fan_out(ledger) as controllers:
            async with controller(saying(allowing(FWALL, C1))) as port:
                first = await asked(controllers, call("region", port, **spec))
            second = await asked(controllers, call("region", port, **spec))
            fewer = msgspec.structs.replace(scenario.group, apps=scenario.group.apps[:1])
            roster = Roster(placement=(call("region", port, **spec),))
            of_fewer = await controllers.answers(fewer, scenario.fleet, roster)
            more = msgspec.structs.replace(
                scenario.group,
                apps=(*scenario.group.apps, msgspec.structs.replace(fewer.apps[0], name="new")),
            )
            of_more = await controllers.answers(more, scenario.fleet, roster)
            elsewhere = msgspec.structs.replace(scenario.group, name="another")
            of_another = await controllers.answers(elsewhere, scenario.fleet, roster)
        (said,) = (each for each in first.answers if each.controller == "region")
        (repeated,) = (each for each in second.answers if each.controller == "region")
        assert not first.failures
        assert repeated == msgspec.structs.replace(said, is_last_known=True)
        assert not second.refusals
        assert "is used, by its policy" in only(second.failures).words
        assert not of_fewer.refusals
        for unknown in (of_more, of_another):
            assert "it never answered about these apps" in only(unknown.refusals).words

    async def test_without_a_last_answer_it_is_refused(self, kept: Ledger) -> None:
        with reserved_port() as port, fan_out(kept) as controllers:
            spec = {"onFailure": "lastAnswer"}
            answers = await asked(controllers, call("gone", port, **spec))
        assert "it never answered" in only(answers.refusals).words

    async def test_a_controller_that_is_not_registered_is_no_small_thing(
        self, kept: Ledger
    ) -> None:
        with fan_out(kept) as controllers:
            answers = await asked(controllers, unregistered=("moon",), untyped=("odd",))
        assert [each.controller for each in answers.failures] == ["moon", "odd"]
        assert only(answers.refusals).words == (
            "controller moon: the group names it, and it is not registered"
        )

    async def test_what_built_in_ones_refuse_is_told(self, kept: Ledger) -> None:
        scenario = base()
        rule = AppAffinityRule(app=FWALL, deny=("moon",))
        group = msgspec.structs.replace(scenario.group, affinity=(rule,))

        def broken(_: DeploymentGroup, __: FleetSnapshot, ___: Check) -> Found:
            raise KeyError("secret")

        with fan_out(kept, hpa=broken) as controllers:
            answers = await controllers.answers(group, scenario.fleet, Roster())
        affinity, hpa = answers.refusals
        assert "names moon" in affinity.words
        assert "it failed: KeyError;" in hpa.words


class TestBadAnswers:
    async def answered(self, kept: Ledger, data: bytes) -> ControllerFailure:
        async with controller(saying(data)) as port:
            with fan_out(kept) as controllers:
                return only((await asked(controllers, call("odd", port))).refusals)

    async def test_garbage(self, kept: Ledger) -> None:
        failure = await self.answered(kept, b"\xff\xff\xff")
        assert failure.token == "garbage"
        assert "3 bytes are no CandidatesResponse" in failure.words

    async def test_nothing(self, kept: Ledger) -> None:
        failure = await self.answered(kept, b"")
        assert "its answer has neither candidates nor compatibility" in failure.words

    async def test_clusters_and_apps_that_nobody_asked_about(self, kept: Ledger) -> None:
        failure = await self.answered(kept, allowing(FWALL, "p1+moon"))
        assert failure.token == "garbage"
        assert "its answer names cluster 'p1+moon', which it was not asked about" in failure.words
        failure = await self.answered(kept, allowing("moon", C1))
        assert "its answer names app 'moon'" in failure.words

    async def test_more_than_anybody_wants_to_read(self, kept: Ledger) -> None:
        failure = await self.answered(kept, allowing(ANALYTICS, *(["p1+moon"] * 700_000)))
        assert failure.token == "failed"
        assert "larger than max" in failure.words

    async def test_an_error_with_words(self, kept: Ledger) -> None:
        async def raising(_: bytes) -> bytes:
            raise ValueError("no such region: moon")

        async with controller(raising) as port:
            with fan_out(kept) as controllers:
                failure = only((await asked(controllers, call("odd", port))).refusals)
        assert failure.token == "failed"
        assert "no such region: moon" in failure.words

    async def test_what_does_not_speak_grpc(self, kept: Ledger) -> None:
        async def http(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            writer.close()

        async with listener(http) as port:
            with fan_out(kept) as controllers:
                answers = await asked(controllers, call("odd", port))
        assert only(answers.refusals).token == "unreachable"

    async def test_a_contract_that_nothing_is_set_up_for(self, kept: Ledger) -> None:
        with fan_out(kept) as controllers:
            answers = await asked(controllers, call("old", 1, contract="emco"))
        assert "nothing is set up for controllers of emco" in only(answers.refusals).words


class TestWhereItIs:
    async def test_names_are_names_and_nothing_else(self, kept: Ledger) -> None:
        with fan_out(kept) as controllers:
            for host in ("unix:/run/x.sock", "dns://8.8.8.8/x", "a b", "x" * 254):
                answers = await asked(controllers, call("odd", 1, host=host))
                assert "is no name or address of a host" in only(answers.refusals).words

    async def test_by_name_and_past_any_proxy(
        self, kept: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for each in ("http_proxy", "https_proxy", "grpc_proxy"):
            monkeypatch.setenv(each, "http://127.0.0.1:1")
        async with controller(saying(allowing(FWALL, C1))) as port:
            with fan_out(kept) as controllers:
                answers = await asked(controllers, call("region", port, host="localhost"))
        assert not answers.failures

    async def test_with_tls_it_has_to_be_the_one_it_says(
        self, kept: Ledger, tmp_path: Path
    ) -> None:
        authority, other = Authority(tmp_path), Authority(make(tmp_path / "other"))
        certificate, key = (path.read_bytes() for path in authority.issue("controller"))
        trusted, stranger = (each.certificate.read_text() for each in (authority, other))
        async with controller(
            saying(allowing(FWALL, C1)), certificate=certificate, key=key
        ) as port:
            with fan_out(kept) as controllers:
                answers = await asked(
                    controllers,
                    call("a-good", port, tls={"ca": trusted}),
                    call("b-stranger", port, tls={"ca": stranger}),
                    call("c-plain", port, deadline=5.0),
                    call("d-named", port, tls={"ca": trusted, "serverName": "moon"}),
                )
        assert [each.controller for each in answers.failures] == [
            "b-stranger",
            "c-plain",
            "d-named",
        ]
        assert {each.token for each in answers.failures} == {"unreachable"}

    async def test_with_an_identity_it_can_ask_who_we_are(
        self, kept: Ledger, tmp_path: Path
    ) -> None:
        authority = Authority(tmp_path)
        certificate, key = (path.read_bytes() for path in authority.issue("controller"))
        ours, our_key = (path.read_bytes() for path in authority.issue("dovetail"))
        identity = TlsIdentity(certificate=ours, key=our_key)
        trusted = authority.certificate.read_bytes()
        async with controller(
            saying(allowing(FWALL, C1)), certificate=certificate, key=key, authority=trusted
        ) as port:
            asking = call("region", port, tls={"ca": trusted.decode()})
            with fan_out(kept, identity=identity) as controllers:
                assert not (await asked(controllers, asking)).failures
            with fan_out(kept) as controllers:
                assert only((await asked(controllers, asking)).refusals).token == "unreachable"


def make(directory: Path) -> Path:
    directory.mkdir()
    return directory


async def test_calls_are_counted_by_how_they_end(kept: Ledger) -> None:
    def count(outcome: str) -> float:
        return CALLS.labels("dovetail", outcome)._value.get()  # type: ignore[no-any-return]

    before = count("garbage"), count("answered")
    async with controller(saying(b"")) as bad, controller(saying(allowing(FWALL, C1))) as good:
        with fan_out(kept) as controllers:
            await asked(controllers, call("bad", bad), call("good", good))
    assert (count("garbage"), count("answered")) == (before[0] + 1, before[1] + 1)


async def test_each_call_is_a_span(kept: Ledger) -> None:
    names = []

    class Tracer:
        def start_as_current_span(self, name: str) -> AbstractContextManager[None]:
            names.append(name)
            return nullcontext()

    TRACING.use(cast("Any", Tracer()))
    try:
        async with controller(saying(allowing(FWALL, C1))) as port:
            with fan_out(kept) as controllers:
                await asked(controllers, call("region", port))
    finally:
        TRACING.use(None)
    spans = {"controller affinity", "controller generic", "controller hpa", "controller region"}
    assert set(names) >= spans
