"""Which kubelet is believed, by which name, and who asks it."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from dovetail.node.sources.kubelet_client import BadSource, KubeletClient, Unanswered, names_at
from tests.node.sources.test_sources import serving
from tests.rest.certificates import Authority


def presenting(certificate: tuple[Path, Path], clients: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    if clients is not None:
        context.load_verify_locations(clients)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def test_a_default_kubelet_names_the_node_and_no_address(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "node-ca")
    async with serving(presenting(authority.sign("kubelet", host="node-1"))) as (server, url):
        strict = KubeletClient(url, ca_file=authority.file)
        with pytest.raises(Unanswered, match=r"names neither 127.0.0.1: .*pods.server_name"):
            await strict.get("/pods")
        assert names_at(url, "node-1") == ("127.0.0.1", "node-1")
        client = KubeletClient(url, ca_file=authority.file, server_names=names_at(url, "node-1"))
        for _ in range(2):
            assert b"PodList" in await client.get("/pods")
        assert len(server.seen) == 2
        other = KubeletClient(url, ca_file=authority.file, server_names=names_at(url, "node-2"))
        with pytest.raises(Unanswered, match="names neither"):
            await other.get("/pods")
        for each in (strict, client, other):
            await each.close()


async def test_a_new_kubelet_makes_its_certificate_when_the_agent_is_there(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    there, later = authority.file, tmp_path / "later.crt"
    async with serving(presenting(authority.sign("kubelet"))) as (_, url):
        client = KubeletClient(url, ca_file=later)
        with pytest.raises(Unanswered, match=r"later\.crt is not there"):
            await client.get("/pods")
        there.rename(later)
        assert await client.get("/pods")
        await client.close()


def test_elsewhere_than_on_this_machine_the_address_counts() -> None:
    assert names_at("https://10.0.0.1:10250", "node-1") == ("10.0.0.1",)


async def test_a_certificate_of_another_authority_is_no_matter_of_names(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path, "ours"), Authority(tmp_path, "theirs")
    async with serving(presenting(theirs.sign("kubelet", host="node-1"))) as (server, url):
        client = KubeletClient(url, ca_file=ours.file, server_names=names_at(url, "node-1"))
        with pytest.raises(Unanswered, match="cannot be asked"):
            await client.get("/pods")
        await client.close()
        assert server.seen == []


async def test_a_client_certificate_is_shown_and_replaced(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "ca")
    known, key = authority.sign("agent")
    own = tmp_path / "both.pem"
    own.write_text(known.read_text() + key.read_text())
    context = presenting(authority.sign("kubelet"), authority.file)
    async with serving(context) as (_, url):
        without = KubeletClient(url, ca_file=authority.file)
        with pytest.raises(Unanswered):
            await without.get("/pods")
        client = KubeletClient(url, ca_file=authority.file, certificate=own)
        assert await client.get("/pods")
        # Half written: the one of before will do.
        own.write_text(known.read_text())
        assert await client.get("/pods")
        again, key = authority.sign("agent", "again")
        own.write_text(again.read_text() + key.read_text())
        assert await client.get("/pods")
        await without.close()
        await client.close()


def test_a_certificate_without_its_key_is_told(tmp_path: Path) -> None:
    certificate, _ = Authority(tmp_path, "ca").sign("agent")
    with pytest.raises(BadSource, match=r"agent\.crt: no certificate with its key"):
        KubeletClient("https://127.0.0.1:10250", certificate=certificate)
