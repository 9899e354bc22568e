"""The ways in: what a kubeconfig says is done or refused, and credentials are fresh when needed."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dovetail.kube.api.access import BadKubeconfig, access, access_by_document
from dovetail.kube.api.client import KubeClient, connect
from dovetail.kube.api.limits import DEFAULT_LIMITS, ClientLimits
from dovetail.kube.api.port import ApiError, ApiUnreachable
from dovetail.podfit.objects import Node
from tests.support.kube.pki import Authority
from tests.support.kube.scripted import (
    Answer,
    ReceivedRequest,
    Script,
    ScriptedServer,
    client_of,
    kubeconfig,
    no,
    ok,
    streamed,
)

NODE = {"metadata": {"name": "n", "resourceVersion": "7"}}
V1 = "client.authentication.k8s.io/v1"


@asynccontextmanager
async def connected(
    directory: Path, script: Script, limits: ClientLimits = DEFAULT_LIMITS, **user: Any
) -> AsyncIterator[tuple[KubeClient, ScriptedServer]]:
    async with (
        asyncio.timeout(60),
        client_of(directory, script, user, limits) as (client, server),
    ):
        yield client, server


async def watched(client: KubeClient) -> None:
    async with aclosing(client.watch(Node, "5")) as changes:
        async for _ in changes:
            pass


class Door:
    """Lets in whoever shows the token that is valid now."""

    def __init__(self, valid: str) -> None:
        self.valid = valid

    def __call__(self, asked: ReceivedRequest) -> Answer:
        if asked.headers.get("authorization") != f"bearer {self.valid}":
            return no(401)
        return streamed() if "watch" in asked.target else ok(NODE)


async def test_a_token_that_was_rotated_is_read_again(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    door = Door("old")

    # Relative names are relative to the kubeconfig.
    async with connected(tmp_path, door, tokenFile="token") as (client, server):
        for verb in (lambda: client.get(Node, "n"), lambda: watched(client)):
            await verb()
            door.valid = f"{door.valid}er"
            token.write_text(door.valid)
            before = len(server.asked)
            await verb()
            await verb()
            assert len(server.asked) == before + 3
        door.valid = "unknown"
        with pytest.raises(ApiError) as refused:
            await client.get(Node, "n")
        assert refused.value.code == 401


async def test_a_token_file_is_read_again_before_the_old_token_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")

    limits = ClientLimits(token_file_seconds=0.0)
    async with connected(tmp_path, lambda asked: ok(NODE), limits, tokenFile=str(token)) as (
        client,
        server,
    ):
        await client.get(Node, "n")
        token.write_text("new\n")
        await client.get(Node, "n")
        told = [asked.headers["authorization"] for asked in server.asked]
        assert told == ["bearer old", "bearer new"]


async def test_without_credentials_there_is_no_answer_until_they_are_back(tmp_path: Path) -> None:
    token = tmp_path / "token"

    limits = ClientLimits(failure_seconds=0.0)
    async with connected(tmp_path, Door("t"), limits, tokenFile=str(token)) as (client, server):
        with pytest.raises(ApiUnreachable, match=r"no credentials.*token"):
            await client.get(Node, "n")
        token.write_text("")
        with pytest.raises(ApiUnreachable, match="is empty"):
            await watched(client)
        assert not server.asked
        token.write_text("t")
        await client.get(Node, "n")


def plugin(
    directory: Path, body: str, version: str = V1, variables: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """A command that runs `body` and counts its runs in a file."""
    program = directory / "plugin.py"
    counting = "import json, os, sys, time\nopen(sys.argv[1], 'a').write('x')\n"
    program.write_text(f"{counting}{body}\n")
    return {
        "apiVersion": version,
        "command": sys.executable,
        "args": [str(program), str(directory / "runs")],
        "env": [{"name": name, "value": value} for name, value in (variables or {}).items()],
        "interactiveMode": "IfAvailable",
    }


def runs(directory: Path) -> int:
    return len((directory / "runs").read_text())


PRINTS = """
info = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert info["kind"] == "ExecCredential" and info["spec"] == {"interactive": False}
status = {"token": open(os.environ["TOKEN"]).read()}
if "EXPIRES" in os.environ:
    status["expirationTimestamp"] = os.environ["EXPIRES"]
print(json.dumps({**info, "status": status}))
"""


@pytest.mark.parametrize("version", [V1, f"{V1}beta1"])
async def test_a_command_is_asked_once_and_again_when_its_token_is_refused(
    tmp_path: Path, version: str
) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    door = Door("first")

    said = plugin(tmp_path, PRINTS, version, {"TOKEN": str(token)})
    async with connected(tmp_path, door, exec=said) as (client, _server):
        await asyncio.gather(*(client.get(Node, "n") for _ in range(5)))
        assert runs(tmp_path) == 1
        door.valid = "second"
        token.write_text("second")
        await asyncio.gather(*(client.get(Node, "n") for _ in range(5)))
        assert runs(tmp_path) == 2


@pytest.mark.parametrize(
    ("expires", "times"), [("2020-01-01T00:00:00Z", 3), ("2120-01-01T00:00:00Z", 1)]
)
async def test_a_token_that_has_expired_is_not_used(
    tmp_path: Path, expires: str, times: int
) -> None:
    token = tmp_path / "token"
    token.write_text("t")

    variables = {"TOKEN": str(token), "EXPIRES": expires}
    async with connected(tmp_path, Door("t"), exec=plugin(tmp_path, PRINTS, V1, variables)) as (
        client,
        _server,
    ):
        for _ in range(3):
            await client.get(Node, "n")
        assert runs(tmp_path) == times


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("sys.exit('not logged in')", "ended with 1: not logged in"),
        ("print('hello')", "printed no ExecCredential"),
        ("print('{}')", "printed no ExecCredential"),
        (PRINTS.replace("**info", "**info, 'apiVersion': 'v0'"), "ExecCredential of v0"),
        (PRINTS.replace('"token"', '"clientKeyData"'), "printed no token"),
        ("time.sleep(1000)", "did not end"),
    ],
    ids=["fails", "prints no JSON", "prints nothing of use", "version", "no token", "hangs"],
)
async def test_a_command_that_gives_no_token_is_told_once_to_all_who_wait(
    tmp_path: Path, body: str, problem: str
) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret")

    limits = ClientLimits(plugin_seconds=1.0)
    command = plugin(tmp_path, body, V1, {"TOKEN": str(token)})
    async with connected(tmp_path, Door("x"), limits, exec=command) as (client, _server):
        asking = (client.get(Node, "n") for _ in range(5))
        told = await asyncio.gather(*asking, return_exceptions=True)
        assert {type(each) for each in told} == {ApiUnreachable}
        assert problem in str(told[0])
        assert "s3cret" not in str(told[0])
        assert runs(tmp_path) == 1


def with_cluster(**said: Any) -> str:
    written = kubeconfig("https://h", {})
    written["clusters"][0]["cluster"] |= said
    return json.dumps(written)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "not found"),
        ("", "no kubeconfig"),
        ("{", "expected the node content"),
        ("clusters: []\ncontexts: []\n", "No current context"),
        (json.dumps(kubeconfig("ftp://host", {})), "no URL with http"),
        (json.dumps(kubeconfig("http://h", {}) | {"current-context": "y"}), "'y' not found"),
        (json.dumps(kubeconfig("http://h", {}) | {"clusters": 5}), "no kubeconfig"),
        (json.dumps(kubeconfig("http://h", {"token": 5})), "Expected `str"),
        (json.dumps(kubeconfig("http://h", {"auth-provider": {"name": "x"}})), "auth-provider"),
        (json.dumps(kubeconfig("http://h", {"as": "admin"})), "as is not supported"),
        (with_cluster(**{"proxy-url": "http://p"}), "proxy-url is not supported"),
        (
            json.dumps(kubeconfig("http://h", {"exec": {"apiVersion": "v0", "command": "x"}})),
            "apiVersion v0: one of client.authentication.k8s.io/v1,",
        ),
        (
            json.dumps(
                kubeconfig(
                    "http://h",
                    {"exec": {"apiVersion": V1, "command": "x", "provideClusterInfo": True}},
                )
            ),
            "provideClusterInfo: True is not supported",
        ),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused_with_its_name(
    tmp_path: Path, text: str | None, problem: str
) -> None:
    file = tmp_path / "config"
    if text is not None:
        file.write_text(text)
    with pytest.raises(BadKubeconfig, match=problem) as refused:
        connect(str(file))
    assert str(refused.value).startswith(str(file))


async def test_a_file_next_to_the_kubeconfig_is_found_by_its_short_name(tmp_path: Path) -> None:
    file = tmp_path / "config"
    said = {"exec": {"apiVersion": V1, "command": "bin/login"}}
    file.write_text(json.dumps(kubeconfig("http://h", said)))
    program = tmp_path / "bin" / "login"
    program.parent.mkdir()
    answer = {"apiVersion": V1, "kind": "ExecCredential", "status": {"token": "t"}}
    program.write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n")
    program.chmod(0o700)
    _, found = access(str(file))
    assert await found.header() == "Bearer t"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({}, "certificate"),
        ({"certificate-authority": "ca"}, "mismatch"),
        ({"certificate-authority": "ca", "tls-server-name": "else.where"}, "mismatch"),
        ({"certificate-authority": "ca", "tls-server-name": "localhost"}, ""),
        ({"insecure-skip-tls-verify": True}, ""),
    ],
    ids=["unknown authority", "other host", "other name", "the name it has", "not looked at"],
)
async def test_a_server_is_known_by_its_certificate(
    tmp_path: Path, said: dict[str, Any], problem: str
) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("server")
    (tmp_path / "ca").write_bytes(authority.certificate.read_bytes())
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)

    server = ScriptedServer(lambda asked: ok(NODE))
    listening = await asyncio.start_server(server.serve, "127.0.0.2", 0, ssl=tls)
    port = listening.sockets[0].getsockname()[1]
    written = kubeconfig(f"https://127.0.0.2:{port}", {})
    written["clusters"][0]["cluster"] |= said
    (tmp_path / "config").write_text(json.dumps(written))
    async with listening, connect(str(tmp_path / "config")) as client:
        if problem:
            with pytest.raises(ApiUnreachable, match=problem):
                await client.get(Node, "n")
        else:
            await client.get(Node, "n")
        for writer in server.connections:
            writer.close()


# -- A kubeconfig that somebody sent ---------------------------------------------------------------


def sent(
    user: Mapping[str, Any] | None = None, cluster: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "clusters": [
            {"name": "c", "cluster": {"server": "https://127.0.0.1:1", **(cluster or {})}}
        ],
        "users": [{"name": "u", "user": dict(user or {"token": "s3cret"})}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }


def test_a_kubeconfig_that_was_sent_is_used_for_what_it_has_in_itself(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    data = base64.b64encode(authority.certificate.read_bytes()).decode()
    document = sent(cluster={"certificate-authority-data": data})
    address, _ = access_by_document(json.dumps(document).encode())
    assert (address.host, address.port) == ("127.0.0.1", 1)
    assert address.tls is not None
    assert address.tls.verify_mode is ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("user", "cluster", "word"),
    [
        ({"exec": {"apiVersion": V1, "command": "/bin/true"}}, {}, "exec"),
        ({"auth-provider": {"name": "gcp"}}, {}, "auth-provider"),
        ({"tokenFile": "/etc/passwd"}, {}, "tokenFile"),
        ({"client-certificate": "/a", "client-key-data": ""}, {}, "client-certificate"),
        ({"client-key": "a"}, {}, "client-key"),
        ({}, {"certificate-authority": "ca.crt"}, "certificate-authority"),
        ({}, {"proxy-url": "http://127.0.0.1:2"}, "proxy-url"),
    ],
)
def test_nothing_of_this_machine_is_read_or_run_for_it(
    user: dict[str, Any], cluster: dict[str, Any], word: str
) -> None:
    with pytest.raises(BadKubeconfig, match=word):
        access_by_document(json.dumps(sent(user, cluster)).encode())


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"s3cret: [",
        b"clusters: s3cret\ncontexts: []",
        b"\xff\xfe\x00s3cret",
        json.dumps(sent(cluster={"server": "s3cret"})).encode(),
        json.dumps(sent({"client-certificate-data": "s3cret", "client-key-data": "x"})).encode(),
        json.dumps(
            sent({"client-certificate-data": "czNjcmV0", "client-key-data": "eA=="})
        ).encode(),
        json.dumps({**sent(), "current-context": None}).encode(),
        b"a: " + b"x" * (1 << 20),
    ],
)
def test_what_is_no_kubeconfig_is_refused_without_repeating_it(document: bytes) -> None:
    with pytest.raises(BadKubeconfig) as refused:
        access_by_document(document)
    assert "s3cret" not in str(refused.value)
