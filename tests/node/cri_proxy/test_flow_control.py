"""Any story of calls: no window is overrun, and all that is due arrives."""

from __future__ import annotations

import grpc
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.node.cri_proxy.ends import PASSED, WATCHED, WINDOW, World, patterned

CODE = grpc.StatusCode.FAILED_PRECONDITION

STEPS = st.tuples(
    st.sampled_from(["watched", "passed", "send", "refuse", "cancel", "give", "set", "answer"]),
    st.integers(0, 10**6),
    st.sampled_from([0, 10, 3_000, 30_000, 60_000, 90_000]),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_no_window_is_ever_overrun_and_all_arrives(steps: list[tuple[str, int, int]]) -> None:
    """Both ends check each frame; in the end both count the same, and nobody waits."""
    world, sent = World(), Story()
    for action, which, size in steps:
        sent.step(world, action, which, size)
    sent.finish(world)
    for stream, message in sent.due.items():
        assert world.got(stream) == message
    assert world.client.window == world.server.window == WINDOW


class Story:
    def __init__(self) -> None:
        self.due: dict[int, bytes] = {}
        """By stream, the message that the runtime has to get."""
        self.open: list[int] = []
        self.undecided: list[int] = []

    def step(self, world: World, action: str, which: int, size: int) -> None:
        message = patterned(size)
        if action in ("watched", "passed"):
            stream = world.call(WATCHED if action == "watched" else PASSED, message)
            self.open.append(stream)
            if action == "watched":
                self.undecided.append(stream)
            else:
                self.due[stream] = message
        elif action == "give":
            world.down(world.server.give())
        elif action == "set":
            world.down(world.server.set(size))
        elif action in ("send", "refuse"):
            ready = [each for each in self.undecided if each in world.seen.asked_]
            if ready:
                self.decide(world, ready[which % len(ready)], message, refuse=action == "refuse")
        elif self.open:
            self.end(world, self.open[which % len(self.open)], cancel=action == "cancel")
        world.up(world.client.more(1 + which % 16384))

    def decide(self, world: World, stream: int, message: bytes, *, refuse: bool) -> None:
        self.undecided.remove(stream)
        if refuse:
            self.open.remove(stream)
            world.relay.refuse(stream, CODE, "no")
            world.deliver()
        else:
            self.due[stream] = message
            world.send(stream, message)

    def end(self, world: World, stream: int, *, cancel: bool) -> None:
        if not cancel and stream not in world.server.ended:
            return
        self.open.remove(stream)
        self.due.pop(stream, None)
        if stream in self.undecided:
            self.undecided.remove(stream)
        if cancel:
            world.up(world.client.cancel(stream))
        else:
            world.down(world.server.answer(stream, b"a"))
            world.relay.settled(stream)
            world.deliver()
            assert world.client.headers[stream][-1]["stream"] == str(stream)

    def finish(self, world: World) -> None:
        world.down(world.server.set(WINDOW))
        while self.undecided or world.client.unsent or world.server.kept:
            world.down(world.server.give())
            world.up(world.client.more())
            for stream in [*self.undecided]:
                if stream in world.seen.asked_:
                    self.decide(world, stream, b"at last", refuse=False)
