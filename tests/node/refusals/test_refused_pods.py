"""Pods that are refused for a while are failed, until that stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from dovetail.core.errors import DovetailError
from dovetail.node.common.pods import Sandbox
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.refusals.refused_pods import RefusedPods
from tests.support.loops import eventually

NO_ROOM = AdmissionRejected("plugin_refused", "2 CPUs are wanted")
WEB = Sandbox(uid="u", namespace="default", name="web")


class Server:
    """What the API server says to each write, in turn; then that the pod is over."""

    def __init__(self, answers: Sequence[bool | Exception | None] = ()) -> None:
        self.answers, self.asked = [*answers], list[dict[str, Any]]()
        self.now = 100.0

    async def __call__(self, **about: Any) -> bool | None:
        self.asked.append(about)
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, Exception):
            raise answer
        return answer

    def pods(self, after: float = 10.0) -> RefusedPods:
        return RefusedPods(self, after, first_look=0.0, clock=lambda: self.now)


async def test_after_a_while_it_is_failed_with_the_reason() -> None:
    server = Server([False])
    pods = server.pods()
    pods.refused(WEB, NO_ROOM)
    server.now += 9
    pods.refused(WEB, NO_ROOM)
    server.now += 1
    pods.refused(WEB, NO_ROOM)
    await eventually(lambda: len(server.asked) == 3)
    assert server.asked[0] == {
        "namespace": "default",
        "name": "web",
        "uid": "u",
        "reason": "UnexpectedAdmissionError",
        "message": "Pod was rejected by its node: dovetail: plugin_refused: 2 CPUs are wanted",
    }
    await pods.stop()


async def test_it_is_written_until_it_stays() -> None:
    server = Server([False, True, False, False])
    pods = server.pods(0)
    pods.refused(WEB, AdmissionRejected("topology_affinity", "no"))
    await eventually(lambda: len(server.asked) == 6)
    assert {each["reason"] for each in server.asked} == {"TopologyAffinityError"}
    await pods.stop()
    assert len(server.asked) == 6


@pytest.mark.parametrize("reason", ["plugin_down", "plugin_timeout", "pod_unknown"])
async def test_what_passes_by_itself_fails_nobody(reason: str) -> None:
    server = Server()
    pods = server.pods(0)
    pods.refused(WEB, AdmissionRejected(reason, "no"))
    pods.refused(WEB, AdmissionRejected("plugin_refused", "no", later=True))
    await pods.stop()
    assert server.asked == []


async def test_static_pods_are_never_failed() -> None:
    server = Server()
    pods = server.pods(0)
    for origin in ("file", "http"):
        annotations = {"kubernetes.io/config.source": origin}
        pods.refused(Sandbox(uid="s", namespace="n", name="p", annotations=annotations), NO_ROOM)
    await pods.stop()
    assert server.asked == []


async def test_one_that_was_let_in_begins_anew() -> None:
    server = Server()
    pods = server.pods()
    pods.refused(WEB, NO_ROOM)
    server.now += 20
    pods.admitted("u")
    pods.refused(WEB, NO_ROOM)
    await pods.stop()
    assert server.asked == []


async def test_a_server_that_says_no_is_asked_at_the_next_refusal() -> None:
    server = Server([DovetailError("forbidden"), False])
    pods = server.pods(0)
    pods.refused(WEB, NO_ROOM)
    await eventually(lambda: len(server.asked) == 1 and not pods._failing)
    pods.refused(WEB, NO_ROOM)
    await eventually(lambda: len(server.asked) == 4)
    await pods.stop()
