"""Requests that once brought a server down or got past its checks, each kept for good."""

from __future__ import annotations

import pytest

from tests.fuzz.examiner import Examiner
from tests.fuzz.message import Message
from tests.fuzz.routes import FLEET, NODE, Call
from tests.fuzz.world import GENERATIONS, NUMA

DEEP = b'{"a":' * 900 + b"1" + b"}" * 900
KEYS = {"": "", "a": {"b": 1}, "vcpu": 1, "VCPU\n": {"total": 1}}


def bodies(method: str, path: str, *texts: bytes) -> list[Message]:
    message = Call(method, path, body={}).message()
    return [message._replace(body=text) for text in texts]


def inventories(key: str, value: object) -> dict[str, object]:
    return {"inventories": {key: value}, "resource_provider_generation": GENERATIONS[NUMA]}


REFUSED = {
    "nested too deeply": [
        *bodies("POST", "/resource_classes", DEEP, b"[" * 900 + b"]" * 900),
        *bodies("PUT", f"{NODE}/traits", DEEP, b'{"traits":%b}' % DEEP),
        *bodies("POST", FLEET, DEEP),
    ],
    "a name ends in a line feed": [
        Call("POST", "/resource_classes", body={"name": "CUSTOM_A\n"}).message(),
        Call("PUT", "/resource_classes/CUSTOM_A%0A").message(),
        Call("PUT", "/traits/CUSTOM_A%0A").message(),
        Call("POST", FLEET, body=[{"name": "a", "traits": ["CUSTOM_A\n"]}]).message(),
        Call("POST", FLEET, body=[{"name": "a", "inventories": {"CUSTOM_A\n": 1}}]).message(),
    ],
    "NUL in a fleet": [
        Call("POST", FLEET, body=[line]).message()
        for line in (
            {"name": "a\0"},
            {"name": "a", "attributes": {"b": "\0"}},
            {"name": "a", "children": [{"name": "b", "attributes": {"\0": ""}}]},
        )
    ],
    "inventories under keys that name no class": [
        Call("PUT", f"{NODE}/inventories", body=inventories(*item)).message()
        for item in KEYS.items()
    ],
    "the same in a reshape": [
        Call(
            "POST",
            "/reshaper",
            body={"inventories": {NUMA: inventories(*item)}, "allocations": {}},
        ).message()
        for item in KEYS.items()
    ],
    "errors for those who accept any application type": [
        Call("GET", "/nothing").message().with_header(b"Accept", b"application/*"),
    ],
}


@pytest.mark.parametrize("trap", REFUSED)
def test_trap(examiner: Examiner, trap: str) -> None:
    for message in REFUSED[trap]:
        reply = examiner.examine(message)
        assert 400 <= reply.status < 500, examiner.told(message, "let through", reply)
