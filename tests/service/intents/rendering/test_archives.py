"""Archives that mean harm, and charts in archives."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.service.intents.rendering import archives
from dovetail.service.intents.rendering.archives import (
    BadArchive,
    chart_directory,
    is_archive,
    path_below,
    unpack,
)
from tests.service.intents.rendering.packing import FILES, member, tgz


def names(root: Path) -> list[str]:
    return sorted(str(each.relative_to(root)) for each in root.rglob("*") if each.is_file())


def test_files_are_unpacked(tmp_path: Path) -> None:
    unpack(tgz(FILES), tmp_path)
    assert names(tmp_path) == sorted(FILES)
    assert (tmp_path / "shop/Chart.yaml").read_text() == FILES["shop/Chart.yaml"]


def test_a_tar_that_is_not_compressed(tmp_path: Path) -> None:
    content = gzip.decompress(tgz(FILES))
    assert is_archive(content)
    unpack(content, tmp_path)
    assert names(tmp_path) == sorted(FILES)


def test_directories_may_be_listed_or_not(tmp_path: Path) -> None:
    listed = (member(name, type=tarfile.DIRTYPE) for name in ("./", "a"))
    unpack(tgz({}, *listed, member("a/b/c")), tmp_path)
    assert names(tmp_path) == ["a/b/c"]


@pytest.mark.parametrize("text", [b"kind: Pod", b"", b"{}", b"\x1e\x8b"])
def test_what_is_no_archive(text: bytes) -> None:
    assert not is_archive(text)


@pytest.mark.parametrize(
    "name",
    [
        "/etc/cron.d/x",
        "../x",
        "a/../../x",
        "a/..",
        "a\\..\\x",
        "",
        "a/" * 40 + "x",
        "x" * 300,
        "\udcff",
        "a\0b",
    ],
)
def test_paths_that_lead_out_or_nowhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadArchive, match="is no path within an archive"):
        path_below(tmp_path, name)


@pytest.mark.parametrize("name", ["../x", "/tmp/x-of-dovetail", "a/../../x"])
def test_an_archive_writes_nowhere_else(tmp_path: Path, name: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    with pytest.raises(BadArchive, match="is no path within an archive"):
        unpack(tgz({name: "x"}), inner)
    assert names(tmp_path) == []
    assert not Path("/tmp/x-of-dovetail").exists()


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE]
)
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    harm = member("shop/passwd", type=kind, linkname="/etc/passwd")
    with pytest.raises(BadArchive, match="'shop/passwd' is neither a file nor a directory"):
        unpack(tgz({}, harm), tmp_path)
    assert names(tmp_path) == []


def test_a_file_through_a_link_is_not_written(tmp_path: Path) -> None:
    link = member("a", type=tarfile.SYMTYPE, linkname=str(tmp_path / "outside"))
    with pytest.raises(BadArchive):
        unpack(tgz({}, link, member("a/x")), tmp_path)
    assert not (tmp_path / "outside").exists()


@pytest.mark.parametrize("second", ["a", "a/b"])
def test_nothing_is_there_twice(tmp_path: Path, second: str) -> None:
    with pytest.raises(BadArchive, match=second):
        unpack(tgz({}, member("a"), member(second)), tmp_path)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    """A thousand times its size; and written nowhere beyond the limit."""
    bomb = tgz({"zeros": bytes(archives.MOST_BYTES + 1)})
    assert len(bomb) < 2**20
    with pytest.raises(BadArchive, match=r"more than 67108864 bytes"):
        unpack(bomb, tmp_path)


def test_many_small_files_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_BYTES", 100_000)
    with pytest.raises(BadArchive, match="more than 100000 bytes when unpacked"):
        unpack(tgz({f"f{n}": bytes(10_000) for n in range(20)}), tmp_path)


def test_many_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_MEMBERS", 3)
    with pytest.raises(BadArchive, match="more than 3 files"):
        unpack(tgz({f"f{n}": "" for n in range(4)}), tmp_path)


def test_a_header_that_claims_a_size_costs_nothing(tmp_path: Path) -> None:
    """Of a long name: it would be read into memory before anybody looks at it."""
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 2**40
    content = header.tobuf(tarfile.GNU_FORMAT) + bytes(1024)
    with pytest.raises(BadArchive):
        unpack(gzip.compress(content), tmp_path)


def test_a_sparse_file_is_refused(tmp_path: Path) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        found = tarfile.TarInfo("zeros")
        found.pax_headers = {
            "GNU.sparse.major": "0",
            "GNU.sparse.minor": "1",
            "GNU.sparse.map": "0,0",
            "GNU.sparse.size": str(2**50),
        }
        archive.addfile(found)
    with pytest.raises(BadArchive):
        unpack(content.getvalue(), tmp_path)


@given(st.binary(max_size=2000), st.integers(0, 600), st.booleans())
@settings(max_examples=200)
def test_damaged_archives_are_told(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, at: int, zipped: bool
) -> None:
    whole = tgz(FILES) if zipped else gzip.decompress(tgz(FILES))
    damaged = whole[:at] + noise + whole[at + len(noise) :]
    try:
        unpack(damaged, tmp_path_factory.mktemp("damaged"))
    except BadArchive as error:
        assert str(error)  # noqa: PT017 - damage may hit nothing


def test_the_chart_of_the_apps_name(tmp_path: Path) -> None:
    unpack(tgz({"shop/Chart.yaml": "", "other/Chart.yaml": ""}), tmp_path)
    assert chart_directory(tmp_path, "shop") == tmp_path / "shop"
    with pytest.raises(BadArchive, match=r"none has the name of the app \(web\): other, shop"):
        chart_directory(tmp_path, "web")


def test_the_only_chart_need_not_have_the_apps_name(tmp_path: Path) -> None:
    unpack(tgz({"shop/Chart.yaml": "", "README.md": ""}), tmp_path)
    assert chart_directory(tmp_path, "web") == tmp_path / "shop"


def test_a_chart_without_a_directory(tmp_path: Path) -> None:
    unpack(tgz({"Chart.yaml": "", "templates/a.yaml": ""}), tmp_path)
    assert chart_directory(tmp_path, "web") == tmp_path


def test_no_chart_at_all(tmp_path: Path) -> None:
    unpack(tgz({"web.yaml": ""}), tmp_path)
    with pytest.raises(BadArchive, match=r"no chart: there is no Chart.yaml .* but web.yaml"):
        chart_directory(tmp_path, "web")
