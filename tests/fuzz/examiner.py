"""What has to hold for every request, however bad, and the examiner that sees to it.

No answer is a 5xx; a refusal has the documented shape and leaves no trace; what was let through
leaves a world that can still be read. After that the world is rebuilt.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, settings

from tests.fuzz.message import Message, Reply, exchange
from tests.fuzz.world import World
from tests.support.server import Server

SCALE = float(os.environ.get("DOVETAIL_FUZZ_SCALE", "0"))
"""Above 0: that many times the usual examples, drawn anew in every run."""
PROBLEM = "application/problem+json"
"""What Dovetail's own endpoints answer with; those of Placement keep to Placement's shape."""
CANDIDATES = "/allocation_candidates?resources=VCPU:1,MEMORY_MB:256,DISK_GB:1"


class Examiner:
    def __init__(self, server: Server, share: float) -> None:
        self.server = server
        self.world = World(server.port)
        self._share = share
        self._touched = False

    def examples(self, count: int) -> settings:
        """So many examples, or this examiner's share of them; the same ones in every run."""
        return settings(
            max_examples=max(1, int(count * self._share * (SCALE or 1))),
            derandomize=not SCALE,
            database=None,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )

    def share_of(self, messages: Sequence[Message]) -> Sequence[Message]:
        """All of them, or as many as this examiner is meant to look at."""
        return messages[:: round(1 / self._share)]

    def examine(self, message: Message, *, closely: bool = True) -> Reply:
        """Sends a request that is sound as HTTP, and judges what comes of it.

        Not closely: less of the state is looked at after a refusal, for the sake of more requests.
        """
        self.restore()
        writes = message.method not in (b"GET", b"HEAD", b"OPTIONS")
        self._touched = writes  # until it is known to have been refused without a trace
        try:
            reply = exchange(self.server.port, message.encoded(), message.method.decode())
        except TimeoutError:
            reply = None
        assert reply is not None, self.told(message, "no answer", reply)
        assert reply.status < 500, self.told(message, "a server error", reply)
        flaw = flaw_of(message, reply)
        assert not flaw, self.told(message, flaw, reply)
        if writes:
            self._judge_trace(message, reply, closely)
        return reply

    def examine_bytes(self, request: bytes) -> Reply | None:
        """Sends what may not even be HTTP: it may be refused in any words, or not be answered."""
        self.restore()
        reply = exchange(self.server.port, request, hang_up=True)
        if reply is None or not 200 <= reply.status < 300:
            assert reply is None or reply.status < 500, self.told(request, "a server error", reply)
            assert self.world.state() == self.world.pristine, self.told(request, "a trace", reply)
        else:
            self._touched = True
        return reply

    def restore(self) -> None:
        if self._touched:
            self.world.reset()
            self._touched = False

    def touch(self) -> None:
        """Says that the world has been changed on purpose."""
        self._touched = True

    def _judge_trace(self, message: Message, reply: Reply, closely: bool) -> None:
        world = self.world
        if reply.status >= 300:
            before = world.pristine if closely else world.pristine_glimpse
            after = world.state() if closely else world.glimpse()
            self._touched = before != after
            trace = f"a trace: {_difference(before, after)}"
            assert before == after, self.told(message, trace, reply)
            return
        world.state()
        status, body = world.call("GET", CANDIDATES)
        assert status == 200, self.told(message, f"candidates cannot be had: {body}", reply)

    def told(self, request: object, flaw: str, reply: Reply | None) -> str:
        """All that is needed to find out why."""
        raw = request.encoded() if isinstance(request, Message) else request
        sent = raw if isinstance(raw, bytes) and len(raw) < 3000 else repr(raw)[:3000]
        got = reply and (reply.status, reply.headers, reply.body[:1500])
        log = self.server.last_words()
        return f"{flaw}\nrequest: {sent!r}\nanswer: {got}\nlog:\n{log}"


def flaw_of(message: Message, reply: Reply) -> str:
    """What is wrong with the form of this answer; nothing: the empty text."""
    if 300 <= reply.status < 400:
        return "a redirection"
    if reply.status < 300 or message.method == b"HEAD" or not _accepts_json(message):
        return ""
    if reply.status == 401:  # it comes from the layer before the API, in its own shape
        return ""
    kind = reply.headers.get("content-type")
    try:
        document = json.loads(reply.body)
        error = document if kind == PROBLEM else document["errors"][0]
    except (ValueError, LookupError, TypeError):
        return "not an error document"
    if kind != (PROBLEM if message.target.startswith(b"/dovetail/") else "application/json"):
        return "the wrong type of error document"
    return _flaw_of_error(error, reply)


def _flaw_of_error(error: dict[str, Any], reply: Reply) -> str:
    if error.get("status") != reply.status:
        return "the status in the error document is another"
    texts = ("title", "detail", "request_id")
    missing = [key for key in texts if not isinstance(error.get(key), str)]
    if missing:
        return f"no {missing} in the error document"
    if reply.headers.get("x-openstack-request-id") != error["request_id"]:
        return "the request id in the error document is another"
    return ""


def _accepts_json(message: Message) -> bool:
    accept = message.header(b"accept")
    return accept in (None, b"", b"*/*", b"application/json", b"application/*")


def _difference(before: Any, after: Any) -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [key for key in before | after if before.get(key) != after.get(key)]
        return ", ".join(f"{key}: {_difference(before.get(key), after.get(key))}" for key in keys)
    return f"{before} became {after}"
