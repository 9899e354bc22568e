"""Kubeconfigs: what would reach beyond them is refused, and secrets are not shown."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from dovetail.intents.documents.errors import BadDocument
from dovetail.intents.documents.kubeconfigs import check_kubeconfig, without_secrets


def kubeconfig(cluster: dict[str, Any] | None = None, user: dict[str, Any] | None = None) -> bytes:
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://c:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": {"token": "s3cret", **(user or {})}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    return yaml.safe_dump(document).encode()


def test_one_with_data_alone_is_good() -> None:
    check_kubeconfig(kubeconfig({"certificate-authority-data": "YQ=="}), "file")


@pytest.mark.parametrize(
    ("cluster", "user", "field"),
    [
        ({}, {"exec": {"command": "sh"}}, "file.users[u].exec"),
        ({}, {"auth-provider": {"name": "gcp"}}, "file.users[u].auth-provider"),
        ({}, {"client-certificate": "/etc/x"}, "file.users[u].client-certificate"),
        ({}, {"client-key": "/etc/x"}, "file.users[u].client-key"),
        ({}, {"tokenFile": "/etc/shadow"}, "file.users[u].tokenFile"),
        ({"certificate-authority": "/etc/x"}, {}, "file.clusters[c].certificate-authority"),
        ({"server": "file:///etc/passwd"}, {}, "file.clusters[c].server"),
        ({"server": 7}, {}, "file.clusters[c].server"),
    ],
)
def test_what_reaches_beyond_it_is_refused(
    cluster: dict[str, Any], user: dict[str, Any], field: str
) -> None:
    with pytest.raises(BadDocument) as caught:
        check_kubeconfig(kubeconfig(cluster, user), "file")
    assert caught.value.field == field


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"text",
        b"[]",
        b"clusters: 1",
        b"clusters: [1]",
        b"users: []",
        b"a: &a [*a]",
        b"a: !!python/object/apply:os.system [ls]",
        b"{" * 5000,
        b"a\0b: 1",
    ],
)
def test_what_is_no_kubeconfig_is_refused(content: bytes) -> None:
    with pytest.raises(BadDocument):
        check_kubeconfig(content, "file")


def test_secrets_are_not_shown() -> None:
    secrets = {"password": "p4ss", "client-key-data": "a2V5"}
    shown = without_secrets(kubeconfig({}, secrets))
    assert b"https://c:6443" in shown
    for secret in (b"s3cret", b"p4ss", b"a2V5"):
        assert secret not in shown
