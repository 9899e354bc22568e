"""Files of apps to objects: text, charts by a real helm, profiles; and helms that misbehave."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dovetail.core.errors import Malformed
from dovetail.intents.manifests.errors import BadManifest
from dovetail.service.intents.reading import AppFiles
from dovetail.service.intents.rendering import ChartRenderer, Helm
from dovetail.service.intents.rendering.archives import BadArchive
from dovetail.service.intents.rendering.helm import (
    HelmFailed,
    HelmLimits,
    HelmMissing,
    secrets_among,
)
from dovetail.service.intents.rendering.renderer import BadProfile, is_installed
from tests.service.intents.rendering.packing import FILES, program, tgz
from tests.support.kube import assets
from tests.support.loops import eventually

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: one}\n"


def files(content: bytes, **more: Any) -> AppFiles:
    given: dict[str, Any] = {
        "app": "shop",
        "profile": None,
        "release": "r1",
        "namespace": "edge",
        "values": {},
    }
    return AppFiles(file=content, **{**given, **more})


async def render(content: bytes, helm: Helm | None = None, **more: Any) -> list[dict[str, Any]]:
    found = await ChartRenderer(helm or real_helm())(files(content, **more))
    return [dict(each) for each in found]


def real_helm(limits: HelmLimits | None = None) -> Helm:
    found = assets.find("helm")
    if found is None:
        pytest.skip("no helm")
    return Helm(str(found), limits)


def profile(manifest: str, **more: str) -> bytes:
    return tgz({"manifest.yaml": manifest, **{k.replace("__", "."): v for k, v in more.items()}})


# -- plain text


async def test_plain_manifests_need_no_helm() -> None:
    found = await render(f"{POD}---\n{POD.replace('one', 'two')}".encode(), Helm("/nowhere/helm"))
    assert [each["metadata"]["name"] for each in found] == ["one", "two"]


async def test_what_would_change_a_chart_is_not_dropped_in_silence() -> None:
    nowhere = Helm("/nowhere/helm")
    with pytest.raises(BadProfile, match="'replicas' is a value of a chart: the app is none"):
        await render(POD.encode(), nowhere, values={"replicas": "3"})
    override = profile("type: {values: v.yaml}", v__yaml="replicas: 5\n")
    with pytest.raises(BadProfile, match="the profile changes a chart, and the app is none"):
        await render(POD.encode(), nowhere, profile=override)
    idle = profile("type: {values: v.yaml}", v__yaml="# nothing\n")
    assert await render(POD.encode(), nowhere, profile=idle)


async def test_what_is_neither_text_nor_archive_is_told() -> None:
    with pytest.raises(BadManifest, match="shop: byte 1 is no UTF-8"):
        await render(b"\x01\xff\xfe", Helm("/nowhere/helm"))
    with pytest.raises(BadArchive, match=r"a zip file: a chart is a .tgz"):
        await render(b"PK\x03\x04...", Helm("/nowhere/helm"))
    with pytest.raises(BadArchive, match="no tar archive that can be read"):
        await render(b"\x1f\x8b and so on", Helm("/nowhere/helm"))


# -- charts


async def test_a_chart_is_rendered() -> None:
    (web,) = await render(tgz(FILES))
    assert web["metadata"] == {"name": "r1-web", "namespace": "edge"}
    assert web["spec"]["replicas"] == 1


async def test_values_of_the_profile_and_of_the_group_win_in_this_order() -> None:
    override = profile("type: {values: v.yaml}", v__yaml="replicas: 5\nimage: web:2\n")
    (web,) = await render(tgz(FILES), profile=override, values={"replicas": "7"})
    (main,) = web["spec"]["template"]["spec"]["containers"]
    assert (web["spec"]["replicas"], main["image"]) == (7, "web:2")


async def test_files_of_the_profile_take_the_place_of_the_charts() -> None:
    override = profile(
        "version: v1\ntype:\n  values:\n  configresource:\n"
        "  - {filepath: other.yaml, chartpath: shop/templates/web.yaml}\n"
        "  - {filepath: other.yaml, chartpath: shop/files/new.yaml}\n",
        other__yaml=POD,
    )
    (pod,) = await render(tgz(FILES), profile=override)
    assert pod["kind"] == "Pod"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"kind: Profile", "the profile is no .tgz"),
        (tgz({"other.yaml": ""}), "there is no manifest.yaml in the profile, but other.yaml"),
        (profile("type: {values: v.yaml}"), "values: there is no v.yaml in the profile"),
        (profile("type: {values: 3}"), "manifest.yaml: Expected `str`, got `int`"),
        (profile("type: {values: ../../../etc/passwd}"), "is no path within an archive"),
        (
            profile("type: {configresource: [{filepath: manifest.yaml, chartpath: /etc/x}]}"),
            "'/etc/x' is no path within an archive",
        ),
        (
            profile("type: {configresource: [{filepath: manifest.yaml, chartpath: shop}]}"),
            "configresource: shop: Is a directory",
        ),
        (
            profile("type: {configresource: [{filepath: x.yaml, chartpath: shop/x}]}"),
            "configresource: there is no x.yaml in the profile",
        ),
    ],
)
async def test_profiles_that_cannot_be_applied(content: bytes, words: str) -> None:
    with pytest.raises(Malformed, match=words) as refused:
        await render(tgz(FILES), Helm("/nowhere/helm"), profile=content)
    assert isinstance(refused.value, BadProfile | BadArchive)


async def test_crds_are_part_of_a_chart() -> None:
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}"
    found = await render(tgz({**FILES, "shop/crds/a.yaml": crd}))
    assert {each["kind"] for each in found} == {"CustomResourceDefinition", "Deployment"}


def hook(*events: str) -> dict[str, Any]:
    return {"metadata": {"annotations": {"helm.sh/hook": ",".join(events)}}}


def test_hooks_of_an_installation_are_objects_like_others() -> None:
    assert is_installed({"metadata": {}})
    assert is_installed({"metadata": {"annotations": None}})
    assert is_installed(hook("pre-install", " post-upgrade"))
    for event in ("test", "test-success", "pre-delete", "post-upgrade", "pre-rollback"):
        assert not is_installed(hook(event))


async def test_what_helm_says_is_told_without_our_directories() -> None:
    broken = {**FILES, "shop/templates/web.yaml": '{{ required "say which disk" .Values.disk }}'}
    with pytest.raises(HelmFailed, match=r"shop/templates/web.yaml.*say which disk") as refused:
        await render(tgz(broken))
    assert "/tmp" not in str(refused.value)


async def test_what_helm_says_shows_no_secrets() -> None:
    text = '{{ fail (printf "%v %v" .Values.adminPassword .Values.token) }}'
    broken = {**FILES, "shop/templates/web.yaml": text}
    with pytest.raises(HelmFailed, match=r"\(hidden\) \(hidden\)") as refused:
        await render(tgz(broken), values={"token": "s3cr3t-token"})
    assert "hunter22" not in str(refused.value)
    assert "s3cr3t" not in str(refused.value)


@pytest.mark.parametrize("release", ["--debug", "Bad_Name", "-", "x" * 80])
async def test_names_of_releases_are_never_flags(release: str) -> None:
    with pytest.raises(HelmFailed, match="name"):
        await render(tgz(FILES), release=release)


async def test_values_with_text_that_looks_like_flags() -> None:
    (web,) = await render(tgz(FILES), values={"image": "--post-renderer=/bin/sh", "a b": "c"})
    (main,) = web["spec"]["template"]["spec"]["containers"]
    assert main["image"] == "--post-renderer=/bin/sh"
    with pytest.raises(HelmFailed, match="NUL character"):
        await render(tgz(FILES), values={"image": "a\0b"})


async def test_a_chart_that_never_ends() -> None:
    loop, end = "{{ range until 1000 }}", "{{ end }}"
    endless = f'{loop * 3}{{{{ sha256sum "x" | trunc 0 }}}}{end * 3}'
    helm = real_helm(HelmLimits(seconds=1))
    with pytest.raises(HelmFailed, match="helm did not end within 1 s, and was stopped"):
        await render(tgz({**FILES, "shop/templates/web.yaml": endless}), helm)


async def test_a_chart_that_takes_all_memory() -> None:
    """It doubles a text again and again."""
    bomb = '{{- $x := "0123456789" }}{{ range until 40 }}{{ $x = printf "%s%s" $x $x }}{{ end }}'
    with pytest.raises(HelmFailed, match=r"helm needs more than 2147483648 bytes of memory"):
        await render(
            tgz({**FILES, "shop/templates/web.yaml": bomb}),
            real_helm(HelmLimits(memory_bytes=2**31)),
        )


async def test_a_chart_knows_nothing_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_TOKEN", "s3cr3t")
    files = '{{ .Files.Get "/etc/passwd" }}{{ .Files.Get "../../../etc/passwd" }}'
    text = files + '{{ lookup "v1" "Secret" "" "" }}'
    spy = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: spy}}\ndata: {{found: '{text}'}}"
    (found,) = await render(tgz({**FILES, "shop/templates/web.yaml": spy}))
    assert found["data"] == {"found": "map[]"}


async def test_schemas_of_values_open_no_files() -> None:
    """They can point anywhere: at files of the server, at addresses beside it."""
    schema = '{"$ref": "file:///etc/hostname"}'
    assert await render(tgz({**FILES, "shop/values.schema.json": schema}))


# -- programs that stand for helm


async def test_without_helm_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        HelmMissing,
        match=r"this is a Helm chart, and there is no helm on the server's PATH: install helm 3\.16"
        r" or newer, name it by the setting intents\.helm, or upload",
    ):
        await render(tgz(FILES), Helm())
    with pytest.raises(HelmMissing, match="/nowhere/helm is no program: install helm"):
        await render(tgz(FILES), Helm("/nowhere/helm"))


async def test_helm_is_found_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, f"printf '%s' '{POD}'")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (await render(tgz(FILES), Helm()))[0]["kind"] == "Pod"


async def test_helm_gets_nothing_of_our_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_TOKEN", "s3cr3t")
    monkeypatch.setenv("KUBECONFIG", "/home/somebody/.kube/config")
    seen = tmp_path / "seen"
    script = f"/usr/bin/env > {seen}; pwd >> {seen}; printf '%s' '{POD}'"
    await render(tgz(FILES), Helm(program(tmp_path, script)))
    text = seen.read_text()
    given = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert "s3cr3t" not in text
    assert given["KUBECONFIG"] == f"{given['HOME']}/none"
    assert given["HTTPS_PROXY"] == given["http_proxy"] == "http://127.0.0.1:9"
    assert given["HOME"] in text.splitlines(), "where it runs"
    assert set(given) <= {
        *("HOME", "PATH", "TMPDIR", "PWD", "OLDPWD", "SHLVL", "_", "KUBECONFIG"),
        *("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_PLUGINS"),
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
    }


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_a_helm_that_hangs_is_stopped_with_all_that_it_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"/bin/sleep 300 & echo $! >> {pids}; echo $$ >> {pids}; /bin/sleep 300"
    helm = Helm(program(tmp_path, script), HelmLimits(seconds=0.5))
    with pytest.raises(HelmFailed, match=r"did not end within 0.5 s"):
        await render(tgz(FILES), helm)
    assert not any(is_running(int(each)) for each in pids.read_text().split())


async def test_who_is_not_waited_for_leaves_no_process(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    helm = Helm(program(tmp_path, f"echo $$ > {pids}; exec /bin/sleep 300"))
    task = asyncio.create_task(render(tgz(FILES), helm))
    await eventually(lambda: pids.exists() and pids.read_text() != "")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not is_running(int(pids.read_text()))


async def test_a_helm_that_prints_without_end(tmp_path: Path) -> None:
    helm = Helm(
        program(tmp_path, "while :; do echo '# more and more and more'; done"),
        HelmLimits(output_bytes=100_000),
    )
    with pytest.raises(HelmFailed, match="prints more than 100000 bytes"):
        await render(tgz(FILES), helm)


async def test_a_helm_that_complains_without_end(tmp_path: Path) -> None:
    script = "i=0; while [ $i -lt 20000 ]; do echo complaint >&2; i=$((i+1)); done; exit 3"
    with pytest.raises(HelmFailed, match="complaint") as refused:
        await render(tgz(FILES), Helm(program(tmp_path, script)))
    assert len(str(refused.value)) <= 2000


async def test_a_helm_that_says_nothing(tmp_path: Path) -> None:
    with pytest.raises(HelmFailed, match="helm ended with 3"):
        await render(tgz(FILES), Helm(program(tmp_path, "exit 3")))


async def test_a_helm_that_prints_no_manifests(tmp_path: Path) -> None:
    with pytest.raises(BadManifest, match="chart of shop, document 1: an object is expected"):
        await render(tgz(FILES), Helm(program(tmp_path, "echo oops")))


async def test_a_program_that_cannot_be_run(tmp_path: Path) -> None:
    path = tmp_path / "helm"
    path.write_text("no program")
    path.chmod(0o755)
    with pytest.raises(HelmMissing, match=r"helm cannot be run: Exec format error"):
        await render(tgz(FILES), Helm(str(path)))


async def test_only_so_many_run_at_once(tmp_path: Path) -> None:
    running = tmp_path / "running"
    running.mkdir()
    script = f"""
: > {running}/$$
set -- {running}/*
[ $# -gt 2 ] && exit 9
/bin/sleep 0.05
/bin/rm {running}/$$
printf '%s' '{POD}'
"""
    renderer = ChartRenderer(Helm(program(tmp_path, script), HelmLimits(at_once=2)))
    found = await asyncio.gather(*(renderer(files(tgz(FILES))) for _ in range(6)))
    assert len(found) == 6


def test_what_sounds_like_a_secret() -> None:
    values: Mapping[str, Any] = {
        "image": "web:1",
        "auth": {"enabled": True, "rootPassword": "hunter2", "users": ["alice"]},
        "tls": {"privateKey": "-----BEGIN"},
        "pin": {"password": 123456, "token": "abc"},
    }
    assert sorted(secrets_among(values)) == ["-----BEGIN", "123456", "alice", "hunter2"]


async def test_nothing_is_left_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    for script in (f"/bin/touch $HOME/x; printf '%s' '{POD}'", "exit 1"):
        with suppress(HelmFailed):
            await render(tgz(FILES), Helm(program(tmp_path, script)))
    assert list(own.iterdir()) == []
