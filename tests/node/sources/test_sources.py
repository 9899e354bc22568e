"""Who knows the pods: asked anew each time, bad pods harm no others, silence is not absence."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dovetail.node.common.container_settings import ContainerSettings
from dovetail.node.common.pods import Sandbox
from dovetail.node.common.ports import AdmissionRejected
from dovetail.node.sources.directory import ManifestDirectory
from dovetail.node.sources.kubelet import KubeletPods
from dovetail.node.sources.kubelet_client import BadSource, KubeletClient
from dovetail.node.sources.runtime import amounts
from tests.rest.certificates import Authority


def document(uid: str, name: str = "", **more: Any) -> dict[str, Any]:
    metadata = {"name": name or f"pod-{uid}", "namespace": "shop"} | ({"uid": uid} if uid else {})
    return {"metadata": metadata, "spec": {"containers": [{"name": "main"}]}, **more}


def bad(uid: str) -> dict[str, Any]:
    return {**document(uid), "spec": {"containers": [{"name": "main", "resources": 5}]}}


def sandbox(uid: str, name: str = "") -> Sandbox:
    return Sandbox(uid=uid, namespace="shop", name=name or f"pod-{uid}", runtime_class="kata")


class Server:
    """As much of a kubelet as is asked for."""

    def __init__(self) -> None:
        self.pods: list[Any] | None = []
        self.late = 0
        """The first answers that list nothing."""
        self.status, self.body = 200, b""
        self.seen: list[str] = []
        self.met, self.hold = asyncio.Event(), asyncio.Event()
        self.hold.set()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.seen.append((await reader.readuntil(b"\r\n\r\n")).decode())
            self.met.set()
            await self.hold.wait()
            pods = self.pods if len(self.seen) > self.late else []
            body = self.body or json.dumps({"kind": "PodList", "items": pods}).encode()
            head = f"HTTP/1.1 {self.status} X\r\nContent-Length: {len(body)}\r\n"
            writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(context: ssl.SSLContext | None = None) -> AsyncIterator[tuple[Server, str]]:
    server = Server()
    listening = await asyncio.start_server(server.answer, "127.0.0.1", 0, ssl=context)
    port = listening.sockets[0].getsockname()[1]
    try:
        yield server, f"{'https' if context else 'http'}://127.0.0.1:{port}"
    finally:
        server.hold.set()
        listening.close()


@asynccontextmanager
async def with_kubelet(**options: Any) -> AsyncIterator[tuple[Server, KubeletPods]]:
    async with serving() as (server, url):
        source = KubeletPods(KubeletClient(url, **options), retry_seconds=0.01)
        try:
            yield server, source
        finally:
            await source.close()


class TestKubelet:
    async def test_knows_its_pods(self) -> None:
        async with with_kubelet() as (server, source):
            server.pods = [document("a"), document("b", status={"phase": "Failed"})]
            pod = await source.pod(sandbox("a"))
            assert pod
            assert (pod.uid, pod.name, pod.runtime_class) == ("a", "pod-a", "kata")
            active = await source.active()
            assert active is not None
            assert [each.uid for each in active] == ["a"]
            assert server.seen[0].startswith("GET /pods HTTP/1.1")

    async def test_is_asked_again_for_a_pod_that_is_not_listed_yet(self) -> None:
        async with with_kubelet() as (server, source):
            server.pods, server.late = [document("a")], 2
            assert await source.pod(sandbox("a"))
            assert len(server.seen) == 3
            assert await source.pod(sandbox("b")) is None

    async def test_every_answer_is_newer_than_the_question_and_shared(self) -> None:
        async with with_kubelet() as (server, source):
            server.hold.clear()
            first = asyncio.create_task(source.active())
            await server.met.wait()
            others = [asyncio.create_task(source.active()) for _ in range(20)]
            await asyncio.sleep(0.01)
            server.hold.set()
            await asyncio.gather(first, *others)
            assert len(server.seen) == 2

    async def test_a_bad_pod_is_rejected_and_not_taken_for_gone(self) -> None:
        async with with_kubelet() as (server, source):
            server.pods = ["?", bad("a"), document("b")]
            with pytest.raises(
                AdmissionRejected, match=r"pod 1 of .*/pods: spec.containers\[0\]"
            ) as caught:
                await source.pod(sandbox("a"))
            assert caught.value.reason == "bad_request"
            assert await source.pod(sandbox("b"))
            active = await source.active()
            assert active is not None
            assert [each.uid for each in active] == ["a", "b"]

    @pytest.mark.parametrize(
        ("status", "body", "words"),
        [
            (401, b"{}", "with 401"),
            (200, b"<html>", "is no JSON"),
            (200, b"[]", "is no list of pods"),
            (200, b'{"items": 3}', "is no list of pods"),
        ],
    )
    async def test_an_answer_that_tells_nothing(self, status: int, body: bytes, words: str) -> None:
        async with with_kubelet() as (server, source):
            server.status, server.body = status, body
            assert await source.active() is None
            with pytest.raises(AdmissionRejected, match=words) as caught:
                await source.pod(sandbox("a"))
            assert (caught.value.reason, caught.value.later) == ("pod_unknown", True)

    async def test_no_pods_at_all(self) -> None:
        async with with_kubelet() as (server, source):
            server.pods = None
            assert await source.active() == []

    async def test_one_that_hangs_is_not_waited_for(self) -> None:
        async with with_kubelet(timeout=0.1) as (server, source):
            server.hold.clear()
            assert await source.active() is None

    async def test_nobody_there(self) -> None:
        source = KubeletPods(KubeletClient("http://127.0.0.1:1"))
        with pytest.raises(AdmissionRejected, match="cannot be asked"):
            await source.pod(sandbox("a"))
        await source.close()

    async def test_more_than_anybody_can_have_is_not_read(self) -> None:
        async with with_kubelet(largest_bytes=100) as (server, source):
            server.pods = [document(str(each)) for each in range(10)]
            with pytest.raises(AdmissionRejected, match="more than 100 bytes"):
                await source.pod(sandbox("1"))

    async def test_the_token_is_read_each_time(self, tmp_path: Path) -> None:
        token = tmp_path / "token"
        token.write_text("first\n")

        async with with_kubelet(token_file=token) as (server, source):
            await source.active()
            token.write_text("second\n")
            await source.active()
            token.unlink()
            assert await source.active() is None
            tokens = [each.split("Bearer ")[1].split("\r\n")[0] for each in server.seen]
            assert tokens == ["first", "second"]

    async def test_a_token_that_cannot_be_one_is_told(self, tmp_path: Path) -> None:
        token = tmp_path / "token"
        token.write_bytes(b"\xff\xfe")

        async with with_kubelet(token_file=token) as (_, source):
            with pytest.raises(AdmissionRejected, match=r"the kubelet's token .*token"):
                await source.pod(sandbox("a"))
            assert await source.active() is None

    def test_an_authority_that_is_none_is_told(self, tmp_path: Path) -> None:
        file = tmp_path / "ca.crt"
        file.write_text("no certificate")
        with pytest.raises(BadSource, match=r"ca\.crt: no certificate of an authority: "):
            KubeletClient("https://127.0.0.1:10250", ca_file=file)

    async def test_only_the_authority_that_was_named_is_trusted(self, tmp_path: Path) -> None:
        authority = Authority(tmp_path, "node")
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*authority.sign("kubelet"))

        async with serving(context) as (server, url):
            server.pods = [document("a")]
            trusting = KubeletPods(KubeletClient(url, ca_file=authority.file))
            wary = KubeletPods(KubeletClient(url))
            assert await trusting.active()
            assert await wary.active() is None
            await trusting.close()
            await wary.close()

    @pytest.mark.parametrize(
        "url",
        ["http://10.0.0.1:10255", "http://example.com", "ftp://127.0.0.1", "127.0.0.1:10250", ""],
    )
    def test_addresses_that_must_not_be_asked(self, url: str) -> None:
        with pytest.raises(BadSource):
            KubeletClient(url)


class TestDirectory:
    async def active(self, source: ManifestDirectory) -> list[str] | None:
        found = await source.active()
        return None if found is None else [each.name for each in found]

    async def test_json_yaml_lists_and_several_in_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "1.json").write_text(json.dumps(document("a")))
        (tmp_path / "2.yaml").write_text(
            "metadata: {name: b, uid: b}\nspec: {containers: [{name: x}]}\n---\n"
            "metadata: {name: c, uid: c}\nspec: {containers: [{name: x}]}\n---\n"
        )
        (tmp_path / "3.yml").write_text(json.dumps({"kind": "List", "items": [document("d")]}))
        (tmp_path / ".hidden.json").write_text("?")
        (tmp_path / "README").write_text("?")
        assert await self.active(ManifestDirectory(tmp_path, retry_seconds=0.01)) == [
            "pod-a",
            "b",
            "c",
            "pod-d",
        ]

    async def test_a_changed_file_is_read_again_and_others_are_not(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for uid in "ab":
            (tmp_path / f"{uid}.json").write_text(json.dumps(document(uid)))
        source = ManifestDirectory(tmp_path, retry_seconds=0.01)
        assert await self.active(source) == ["pod-a", "pod-b"]
        (tmp_path / "b.json").write_text(json.dumps(document("b", "new")))
        os.utime(tmp_path / "b.json", ns=(1, 1))
        reads: list[str] = []
        reading = Path.read_bytes

        def counted(path: Path) -> bytes:
            reads.append(path.name)
            return reading(path)

        monkeypatch.setattr(Path, "read_bytes", counted)
        assert await self.active(source) == ["pod-a", "new"]
        assert reads == ["b.json"]
        (tmp_path / "a.json").unlink()
        assert await self.active(source) == ["new"]

    async def test_a_file_that_cannot_be_read_leaves_open_which_pods_there_are(
        self, tmp_path: Path
    ) -> None:
        (tmp_path / "a.json").write_text(json.dumps(document("a")))
        (tmp_path / "b.json").write_text('{"metadata": {')
        source = ManifestDirectory(tmp_path, retry_seconds=0.01)
        assert await self.active(source) is None
        assert await source.pod(sandbox("a"))
        (tmp_path / "b.json").write_text(json.dumps(document("b")))
        assert await self.active(source) == ["pod-a", "pod-b"]

    async def test_so_does_a_directory_that_is_not_there(self, tmp_path: Path) -> None:
        source = ManifestDirectory(tmp_path / "missing", retry_seconds=0.01)
        assert await self.active(source) is None
        assert await source.pod(sandbox("a")) is None

    async def test_a_bad_pod_is_rejected_with_its_place(self, tmp_path: Path) -> None:
        (tmp_path / "a.json").write_text(json.dumps([1]))
        (tmp_path / "b.json").write_text(json.dumps({"items": [document("x"), bad("b")]}))
        source = ManifestDirectory(tmp_path, retry_seconds=0.01)
        with pytest.raises(
            AdmissionRejected, match=r"b.json \(document 2\): spec.containers\[0\].resources"
        ):
            await source.pod(sandbox("b"))
        assert await self.active(source) == ["pod-x", "pod-b"]

    async def test_a_manifest_without_uid_is_for_the_pod_of_its_name(self, tmp_path: Path) -> None:
        (tmp_path / "a.json").write_text(json.dumps(document("", "web")))
        pod = await ManifestDirectory(tmp_path, retry_seconds=0.01).pod(sandbox("whatever", "web"))
        assert pod
        assert pod.uid == "whatever"


class TestRuntime:
    @pytest.mark.parametrize("milli", [3, 10, 100, 250, 1000, 1500, 20000, 63999])
    def test_cpus_follow_from_the_shares_that_the_kubelet_gives(self, milli: int) -> None:
        requests, _ = amounts(ContainerSettings(numbers={"CpuShares": milli * 1024 // 1000}))
        assert requests["cpu"] * 1000 == milli

    def test_no_shares_no_request(self) -> None:
        assert amounts(ContainerSettings(numbers={"CpuShares": 2, "CpuQuota": -1})) == ({}, {})

    def test_limits(self) -> None:
        asked = ContainerSettings(
            numbers={"CpuQuota": 150000, "CpuPeriod": 100000, "MemoryLimitInBytes": 2**30}
        )
        requests, limits = amounts(asked)
        assert limits == {"cpu": 1.5, "memory": 2**30}
        assert requests == {"memory": 2**30}
