"""What passes, what is held, and that neither end can tell."""

from __future__ import annotations

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.node.cri_proxy.envelope import LARGEST_SEALED_BYTES, seal
from dovetail.node.cri_proxy.frames import (
    END_HEADERS,
    END_STREAM,
    PADDED,
    PREFACE,
    BadFrames,
    ErrorCode,
    FrameType,
    frame_bytes,
    reset,
    window_update,
)
from dovetail.node.cri_proxy.relay import Relay
from tests.node.cri_proxy.ends import PASSED, WATCHED, WINDOW, Seen, World, data, patterned
from tests.node.cri_proxy.test_frames import pieces

CODE = grpc.StatusCode.FAILED_PRECONDITION
CUTS = st.lists(st.integers(0, 10**6), max_size=10)
OTHERS = st.sampled_from(
    [
        frame_bytes(FrameType.SETTINGS, 0, 0, bytes.fromhex("000300000064000500100000")),
        frame_bytes(FrameType.SETTINGS, 1, 0),
        frame_bytes(6, 0, 0, b"12345678"),
        frame_bytes(6, 1, 0, b"12345678"),
        frame_bytes(2, 0, 1, b"\0\0\0\0\x10"),
        frame_bytes(FrameType.GOAWAY, 0, 0, b"\0\0\0\x01\0\0\0\0debug"),
        frame_bytes(0xBE, 0xFF, 1, b"who knows"),
        window_update(0, 1),
        window_update(3, 77),
        reset(1, ErrorCode.CANCEL),
        data(1, b"some", ends=False),
        frame_bytes(FrameType.DATA, END_STREAM | PADDED, 3, b"\x02xxpp"),
    ]
)


@settings(max_examples=80, deadline=None)
@given(st.lists(OTHERS | st.none(), max_size=12), CUTS, CUTS)
def test_what_is_not_watched_passes_as_it_came(
    said: list[bytes | None], cuts: list[int], others: list[int]
) -> None:
    """None stands for a new call, whose headers refer to those before."""
    world = World()
    calls = [world.client.call(PASSED, b"")[1] if each is None else each for each in said]
    answers = [world.server.answer(1, b"x") if each is None else each for each in said]
    relay = Relay({WATCHED}, Seen())
    for piece in pieces(PREFACE + b"".join(calls), cuts):
        relay.from_client(piece)
    for piece in pieces(b"".join(answers), others):
        relay.from_runtime(piece)
    assert b"".join(relay.to_runtime) == PREFACE + b"".join(calls)
    assert b"".join(relay.to_client) == b"".join(answers)


def test_watched_question_is_changed_and_its_answer_read() -> None:
    world = World()
    stream = world.call(WATCHED, b"question")
    assert world.seen.asked_ == {stream: seal(b"question")}
    assert world.server.headers[stream][0][":path"] == WATCHED
    assert not world.server.bodies[stream]
    world.send(stream, b"changed")
    assert world.got(stream) == b"changed"
    world.down(world.server.answer(stream, b"answer"))
    assert world.seen.ended_ == {stream: seal(b"answer")}
    assert bytes(world.client.bodies[stream]) == seal(b"answer")


def test_answer_and_all_after_it_waits_until_the_call_is_settled() -> None:
    world = World()
    watched, other = world.call(WATCHED, b"q"), world.call(PASSED, b"p")
    world.send(watched, b"q")
    world.down(world.server.answer(watched, b"a") + world.server.answer(other, b"b"))
    assert watched not in world.client.ended
    assert not world.client.headers[other]
    world.relay.settled(watched)
    world.deliver()
    last = [world.client.headers[stream][-1]["stream"] for stream in (watched, other)]
    assert last == [str(watched), str(other)]
    assert world.client.ended == {watched, other}


def test_other_calls_go_on_while_one_is_held() -> None:
    world = World()
    held, other = world.call(WATCHED, b"q"), world.call(PASSED, b"p")
    assert world.got(other) == b"p"
    world.down(world.server.answer(other, b"a"))
    assert other in world.client.ended
    assert held not in world.client.ended


def test_refused_call_is_cancelled_at_the_runtime_and_answered() -> None:
    world = World()
    stream = world.call(WATCHED, b"q")
    assert world.relay.refuse(stream, CODE, "no room: 100 %")
    world.deliver()
    assert world.server.frames[-1].raw == reset(stream, ErrorCode.CANCEL)
    assert not world.server.bodies[stream]
    assert world.client.ended == {stream}
    (status,) = world.client.headers[stream]
    assert (status["grpc-status"], status["grpc-message"]) == ("9", "no room: 100 %25")
    assert world.client.window == world.server.window == WINDOW
    # It is not ours any longer.
    world.down(window_update(stream, 7))
    assert world.client.frames[-1].raw == window_update(stream, 7)


def test_refusal_is_the_end_of_an_answer_that_has_begun() -> None:
    world = World()
    stream = world.call(WATCHED, b"q")
    world.down(
        frame_bytes(FrameType.HEADERS, END_HEADERS, stream, world.server.block((":status", "200")))
    )
    world.relay.refuse(stream, CODE, "no")
    world.deliver()
    last = {"grpc-status": "9", "grpc-message": "no"}
    assert world.client.headers[stream] == [{":status": "200"}, last]


def test_answer_that_crossed_a_refusal_does_not_bring_headers_out_of_step() -> None:
    world = World()
    stream = world.call(WATCHED, b"q")
    late = world.server.fail(stream)
    world.relay.refuse(stream, CODE, "no")
    world.down(late)
    # Both know what the next block refers to.
    after = world.call(PASSED, b"p")
    world.down(world.server.answer(after, b"a"))
    assert world.client.headers[after][-1] == {"grpc-status": "0", "stream": str(after)}


@pytest.mark.parametrize("sent", [False, True], ids=["undecided", "sent"])
@pytest.mark.parametrize("by", ["client", "runtime"])
def test_call_that_is_cancelled_ends_without_an_answer(by: str, sent: bool) -> None:
    world = World()
    stream = world.call(WATCHED, b"q")
    if sent:
        world.send(stream, b"q")
    if by == "client":
        world.up(world.client.cancel(stream))
        assert world.server.frames[-1].kind == FrameType.RST_STREAM
    else:
        world.down(reset(stream, ErrorCode.CANCEL))
        assert world.client.frames[-1].kind == FrameType.RST_STREAM
    assert world.seen.ended_ == {stream: None}
    assert not world.relay.refuse(stream, CODE, "too late")
    before = len(world.server.frames), len(world.client.frames)
    world.send(stream, b"too late")
    assert (len(world.server.frames), len(world.client.frames)) == before


def test_answer_to_what_was_not_asked_is_none() -> None:
    world = World()
    stream = world.call(WATCHED, b"q")
    world.down(world.server.answer(stream, b"how?"))
    assert world.seen.ended_ == {stream: None}
    assert stream in world.client.ended


def test_answer_that_is_too_long_passes_and_is_not_kept() -> None:
    world = World()
    stream = world.call(WATCHED, b"q")
    world.send(stream, b"q")
    for _ in range(3):
        world.down(data(stream, bytes(LARGEST_SEALED_BYTES // 2), ends=False))
    world.down(world.server.answer(stream, bytes(LARGEST_SEALED_BYTES // 2)))
    world.relay.settled(stream)
    world.deliver()
    assert len(world.client.bodies[stream]) > 2 * LARGEST_SEALED_BYTES - 5
    assert len(world.seen.ended_[stream] or b"") < 2 * LARGEST_SEALED_BYTES - 5


@pytest.mark.parametrize("sent", [False, True], ids=["undecided", "sent"])
def test_error_of_the_runtime_is_no_answer_and_passes_at_once(sent: bool) -> None:
    world = World()
    stream = world.call(WATCHED, b"q")
    if sent:
        world.send(stream, b"q")
    world.down(world.server.fail(stream))
    assert world.seen.ended_ == {stream: None}
    assert world.client.headers[stream][0]["grpc-status"] == "12"


def test_question_larger_than_all_windows_is_held_and_sent_as_they_allow() -> None:
    world = World()
    world.down(world.server.set(1000))
    stream, begin = world.client.call(WATCHED, seal(bytes(300_000)))
    world.up(begin)
    while stream in world.client.unsent:
        world.up(world.client.more())
    assert world.client.window == WINDOW
    world.send(stream, bytes(400_000))
    assert len(world.server.bodies[stream]) == 1000
    while stream not in world.server.ended:
        world.down(world.server.give())
    assert world.got(stream) == bytes(400_000)
    world.down(world.server.give())
    assert world.client.window == world.server.window == WINDOW


def test_what_the_client_can_not_know_to_be_too_much_waits_in_order() -> None:
    world = World()
    held = world.call(WATCHED, b"")
    world.send(held, bytes(60_000))
    stream, begin = world.client.call(PASSED, seal(patterned(60_000)))
    world.up(begin)
    for largest in (7000, 900):
        world.up(world.client.more(largest))
    assert len(world.server.bodies[stream]) == WINDOW - 60_005
    assert stream not in world.server.ended
    world.down(world.server.give())
    assert world.got(stream) == patterned(60_000)


def test_end_of_a_question_does_not_overtake_what_waits() -> None:
    world = World()
    held = world.call(WATCHED, b"")
    world.send(held, bytes(WINDOW - 5))
    stream, begin = world.client.call(PASSED, b"")
    world.client.unsent.clear()
    world.up(begin + data(stream, b"one", ends=False))
    world.down(world.server.give())
    assert bytes(world.server.bodies[stream]) == b"one"
    assert stream not in world.server.ended
    other = world.call(WATCHED, b"")
    world.send(other, bytes(WINDOW - 5))
    world.up(data(stream, b"two", ends=False) + data(stream, b""))
    assert bytes(world.server.bodies[stream]) == b"one"
    world.down(world.server.give())
    assert bytes(world.server.bodies[stream]) == b"onetwo"
    assert stream in world.server.ended


def test_what_passed_counts_when_a_question_of_ours_is_sent() -> None:
    world = World()
    held, other = world.call(WATCHED, b""), world.call(PASSED, bytes(60_000))
    world.send(held, bytes(60_000))
    assert len(world.server.bodies[held]) == WINDOW - 60_005
    world.down(world.server.give())
    assert world.got(held) == world.got(other) == bytes(60_000)


def test_question_goes_on_when_the_runtime_widens_all_streams() -> None:
    world = World()
    world.down(world.server.set(10))
    stream = world.call(WATCHED, b"")
    world.send(stream, bytes(100))
    assert len(world.server.bodies[stream]) == 10
    world.down(world.server.set(1000))
    assert world.got(stream) == bytes(100)


def test_headers_may_refer_to_as_much_as_the_runtime_allows() -> None:
    world = World()
    world.down(frame_bytes(FrameType.SETTINGS, 0, 0, bytes.fromhex("000100010000")))
    world.client.encoder.header_table_size = 65536
    world.server.decoder.max_allowed_table_size = 65536
    assert world.got(world.call(PASSED, b"p")) == b"p"


def test_padding_that_is_not_sent_may_be_sent_again() -> None:
    world = World()
    held = world.call(WATCHED, b"")
    world.send(held, bytes(WINDOW - 5))
    stream, begin = world.client.call(PASSED, b"")
    world.client.unsent.clear()
    world.client.window -= 255
    world.client.credit[stream] -= 255
    world.up(
        begin + frame_bytes(FrameType.DATA, PADDED | END_STREAM, stream, bytes([200]) + bytes(254))
    )
    world.down(world.server.give())
    assert bytes(world.server.bodies[stream]) == bytes(54)
    world.down(world.server.give())
    assert world.client.window == world.server.window == WINDOW


def test_what_waits_of_a_cancelled_call_is_not_sent() -> None:
    world = World()
    held = world.call(WATCHED, b"")
    world.send(held, bytes(WINDOW - 5))
    other = world.call(PASSED, bytes(50_000))
    world.up(world.client.cancel(other))
    while world.server.window < WINDOW:
        world.down(world.server.give())
    assert not world.server.bodies[other]
    assert world.client.window == WINDOW


def test_question_that_is_too_long_is_told_before_its_end() -> None:
    world = World()
    stream, begin = world.client.call(WATCHED, bytes(LARGEST_SEALED_BYTES + 100_000))
    world.up(begin)
    while stream in world.client.unsent:
        world.up(world.client.more())
    assert LARGEST_SEALED_BYTES < len(world.seen.asked_[stream]) <= LARGEST_SEALED_BYTES + WINDOW


def test_question_without_a_message_is_the_runtimes_to_answer() -> None:
    world = World()
    block = world.client.block((":path", WATCHED))
    world.up(frame_bytes(FrameType.HEADERS, END_HEADERS | END_STREAM, 1, block))
    assert world.server.ended == {1}
    assert not world.seen.asked_
    assert not world.relay.refuse(1, CODE, "nothing to refuse")


def test_headers_in_the_middle_of_a_held_question_are_an_error() -> None:
    world = World()
    stream, begin = world.client.call(WATCHED, b"")
    world.up(begin)
    block = world.client.block(("and", "more"))
    with pytest.raises(BadFrames, match="in the middle"):
        world.up(frame_bytes(FrameType.HEADERS, END_HEADERS | END_STREAM, stream, block))
