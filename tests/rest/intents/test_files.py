"""Files beside documents: apps with manifests or charts, clusters with kubeconfigs; and forms."""

from __future__ import annotations

import base64
import gzip
import io
import tarfile
from typing import Any

import pytest
import yaml

from dovetail.rest.intents.multipart import BadForm, FormPart, read_form, write_form
from dovetail.service.intents.settings import IntentSettings
from tests.rest.conftest import Make
from tests.rest.intents.client import APPS, GROUP, IntentsClient, make_group, named
from tests.rest.intents.test_emco import packed

POD = b"apiVersion: v1\nkind: Pod\nmetadata:\n  name: x\nspec:\n  containers: []\n"
CLUSTERS = "cluster-providers/p1/clusters"
SECRET = "s3cret-t0ken"
KUBECONFIG = yaml.safe_dump(
    {
        "clusters": [{"name": "c", "cluster": {"server": "https://c:6443"}}],
        "users": [{"name": "u", "user": {"token": SECRET}}],
    }
).encode()


def told(reply: Any) -> tuple[int, str]:
    assert reply.headers["content-type"] == "application/problem+json", reply.text
    return reply.status_code, reply.json().get("field", "")


def parts(reply: Any) -> dict[str, bytes]:
    return read_form(reply.headers["content-type"], reply.content)


@pytest.mark.parametrize("file", [POD, packed()], ids=["manifests", "chart"])
def test_an_app_comes_back_with_its_file(intents: IntentsClient, file: bytes) -> None:
    make_group(intents)
    made = intents.form("POST", APPS, named("a"), file)
    assert (made.status_code, made.json()) == (201, named("a"))
    one = f"{APPS}/a"
    assert intents.get(one).json() == named("a")
    assert intents.get(one, accept="application/json").json() == named("a")
    raw = intents.get(one, accept="application/octet-stream")
    assert (raw.headers["content-type"], raw.content) == ("application/octet-stream", file)
    both = parts(intents.get(one, accept="multipart/form-data"))
    assert both["file"] == file
    assert intents.get(APPS).json() == [named("a")]


@pytest.mark.parametrize(
    ("spec", "content"),
    [
        ({"manifests": POD.decode()}, POD),
        ({"file": base64.b64encode(packed()).decode()}, None),
        ({"manifests": [yaml.safe_load(POD)]}, None),
    ],
)
def test_an_app_may_have_its_file_in_the_document(
    intents: IntentsClient, spec: dict[str, Any], content: bytes | None
) -> None:
    make_group(intents)
    assert intents.made(APPS, named("a", **spec)) == named("a")
    raw = intents.get(f"{APPS}/a", accept="application/octet-stream").content
    assert raw == content if content else raw


def test_a_file_stays_until_another_comes(intents: IntentsClient) -> None:
    make_group(intents)
    intents.form("POST", APPS, named("a"), POD)
    changed = {"metadata": {"name": "a", "description": "new"}}
    assert intents.put(f"{APPS}/a", changed).status_code == 200
    raw = intents.get(f"{APPS}/a", accept="application/octet-stream")
    assert raw.content == POD
    assert intents.form("PUT", f"{APPS}/a", changed, packed()).status_code == 200
    raw = intents.get(f"{APPS}/a", accept="application/octet-stream")
    assert raw.content != POD


def bomb() -> bytes:
    return gzip.compress(b"\0" * (120 * 2**20), 9)


def linked() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        member = tarfile.TarInfo("passwd")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(member)
    return file.getvalue()


@pytest.mark.parametrize(
    "file",
    [
        b"\x1f\x8b",
        packed()[:-9],
        gzip.compress(b"no archive"),
        bomb(),
        linked(),
        b"kind: [",
        b"\xff\xfe\xfd",
        b"- just\n- a list",
        b"&a [*a, *a]",
    ],
    ids=["magic", "cut", "no tar", "bomb", "link", "no yaml", "no text", "no object", "loop"],
)
def test_a_file_that_is_no_use_is_refused(intents: IntentsClient, file: bytes) -> None:
    make_group(intents)
    assert told(intents.form("POST", APPS, named("a"), file)) == (400, "file")
    assert intents.get(APPS).json() == []


def test_an_upload_may_be_larger_than_other_bodies_but_not_endless(serve: Make) -> None:
    client = IntentsClient(serve(intent_settings=IntentSettings(upload_bytes=10_000)))
    make_group(client)
    assert told(client.form("POST", APPS, named("a"), b"#" * 20_000))[0] == 413
    assert (
        told(client.post(f"{GROUP}/intents", b" " * 9_000_000, content_type="application/json"))[0]
        == 413
    )


# -- clusters ------------------------------------------------------------------------------------


def test_a_kubeconfig_is_kept_and_never_answered(intents: IntentsClient) -> None:
    intents.made("cluster-providers", named("p1"))
    made = intents.form("POST", CLUSTERS, named("c1"), KUBECONFIG)
    again = intents.made(CLUSTERS, named("c2", kubeconfig=KUBECONFIG.decode()))
    assert (made.json(), again) == (named("c1"), named("c2"))
    for accept in ("application/json", "application/octet-stream", "multipart/form-data"):
        shown = intents.get(f"{CLUSTERS}/c1", accept=accept)
        assert shown.status_code == 200
        assert SECRET not in shown.text
    file = parts(intents.get(f"{CLUSTERS}/c1", accept="multipart/form-data"))["file"]
    assert b"https://c:6443" in file


def test_a_kubeconfig_that_reaches_beyond_itself_is_refused(intents: IntentsClient) -> None:
    intents.made("cluster-providers", named("p1"))
    bad = KUBECONFIG.replace(b"token: " + SECRET.encode(), b"exec: {command: sh}")
    assert told(intents.form("POST", CLUSTERS, named("c1"), bad)) == (400, "file.users[u].exec")
    refused = intents.post(CLUSTERS, named("c1", kubeconfig=bad.decode()))
    assert told(refused) == (400, "spec.kubeconfig.users[u].exec")
    assert intents.get(CLUSTERS).json() == []


def test_clusters_are_asked_for_by_label(intents: IntentsClient) -> None:
    intents.made("cluster-providers", named("p1"))
    for name, labels in (("c1", ["edge"]), ("c2", ["edge", "gpu"]), ("c3", [])):
        intents.made(CLUSTERS, named(name))
        for label in labels:
            intents.made(f"{CLUSTERS}/{name}/labels", {"clusterLabel": label})
    assert intents.get(f"{CLUSTERS}?label=edge").json() == ["c1", "c2"]
    assert intents.get(f"{CLUSTERS}?label=none").json() == []
    shown = intents.get(f"{CLUSTERS}?withLabels=true").json()
    assert [len(each["labels"]) for each in shown] == [1, 2, 0]
    assert told(intents.get(f"{CLUSTERS}?withLabels=maybe"))[0] == 400


def test_values_of_a_cluster_are_asked_for_by_key(intents: IntentsClient) -> None:
    intents.made("cluster-providers", named("p1"))
    intents.made(CLUSTERS, named("c1"))
    intents.made(f"{CLUSTERS}/c1/kv-pairs", named("k", kv=[{"a": "1"}, {"b": {"c": 2}}]))
    assert intents.get(f"{CLUSTERS}/c1/kv-pairs/k?key=b").json() == {"c": 2}
    assert told(intents.get(f"{CLUSTERS}/c1/kv-pairs/k?key=z"))[0] == 404


# -- forms ---------------------------------------------------------------------------------------


def test_a_form_is_read_as_it_was_written() -> None:
    written = {"metadata": b"{}", "file": b"\r\n--x\r\n\0\xff", "empty": b""}
    media, body = write_form(
        FormPart(name=name, content=content) for name, content in written.items()
    )
    assert read_form(media, body) == written
    assert read_form(media, b"preamble\r\n" + body + b"epilogue") == written


HEAD = b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\n'


@pytest.mark.parametrize(
    ("media", "body"),
    [
        ("multipart/form-data", HEAD + b"\r\n--b--"),
        ("multipart/form-data; boundary=", HEAD + b"\r\n--b--"),
        ("multipart/form-data; boundary=" + "b" * 71, b""),
        ("multipart/form-data; boundary=b", b""),
        ("multipart/form-data; boundary=b", HEAD + b"content"),
        ("multipart/form-data; boundary=b", HEAD + b"\r\n--b"),
        ("multipart/form-data; boundary=b", HEAD + b"\r\n" + HEAD + b"\r\n--b--"),
        ("multipart/form-data; boundary=b", b"--b\r\n\r\n\r\n--b--"),
        (
            "multipart/form-data; boundary=b",
            b"--b\r\nContent-Disposition: form-data\r\n\r\n\r\n--b--",
        ),
        ("multipart/form-data; boundary=b", b"--bx\r\n\r\n\r\n--b--"),
        ("multipart/form-data; boundary=b", (b"--b\r\n" + b"a" * 9000 + b"\r\n\r\n\r\n--b--")),
        (
            "multipart/form-data; boundary=b",
            b"".join(HEAD.replace(b"file", b"%d" % n) + b"\r\n" for n in range(17)) + b"--b--",
        ),
        ("multipart/form-data; boundary=b", b"--b\r\nContent-Disposition: \xff\r\n\r\n\r\n--b--"),
    ],
)
def test_forms_that_cannot_be_read(intents: IntentsClient, media: str, body: bytes) -> None:
    with pytest.raises(BadForm):
        read_form(media, body)
    make_group(intents)
    assert told(intents.post(APPS, body, content_type=media))[0] in (400, 422)
    assert intents.get(APPS).json() == []


def test_a_form_is_for_kinds_with_files_alone(intents: IntentsClient) -> None:
    assert told(intents.form("POST", "projects", named("p"), b""))[0] == 415
