"""Bodies: valid ones are let through, and none of a few thousand bent ones breaks anything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.examiner import Examiner
from tests.fuzz.json_noise import encoded, noisy
from tests.fuzz.message import Message
from tests.fuzz.routes import CALLS, CLAIMS, FLEET, WITH_BODY, Call


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.method} {call.path}")
def test_requests_are_valid_before_they_are_bent(examiner: Examiner, call: Call) -> None:
    reply = examiner.examine(call.message())
    assert 200 <= reply.status < 300, reply


def test_bent_bodies(examiner: Examiner) -> None:
    @examiner.examples(200)
    @given(bent_bodies(WITH_BODY))
    def check(message: Message) -> None:
        examiner.examine(message)

    check()


def test_many_bent_bodies(examiner: Examiner) -> None:
    @examiner.examples(700)
    @given(bent_bodies(WITH_BODY))
    def check(message: Message) -> None:
        examiner.examine(message, closely=False)

    check()


def test_a_refused_claim_does_not_stand_in_the_way_of_the_next(examiner: Examiner) -> None:
    [valid] = CLAIMS

    @examiner.examples(40)
    @given(bent_bodies(CLAIMS))
    def check(message: Message) -> None:
        reply = examiner.examine(message)
        if reply.status < 300:
            return
        examiner.touch()
        status, body = examiner.world.call("PUT", valid.path, valid.body)
        assert status == 204, examiner.told(message, f"then: {body}", reply)

    check()


@st.composite
def bent_bodies(draw: st.DrawFn, calls: tuple[Call, ...]) -> Message:
    call: Call = draw(st.sampled_from(calls))
    body = draw(noisy(call.body))
    lines = body if call.path == FLEET and isinstance(body, list) else [body]
    return call.message()._replace(body=b"\n".join(encoded(line) for line in lines))
