"""Whether a file changed, by its metadata."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dovetail.rest.server.file_watch import SETTLED_SECONDS, FileWatch
from tests.rest.auth.clock import Clock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "file"
    made.write_text("one")
    return made


@pytest.fixture
def watch(path: Path) -> FileWatch:
    """Long after the file was made."""
    watch = FileWatch(path, clock=Clock(time.time() + 1000))
    assert watch.changed()
    return watch


def test_a_file_that_stays_is_read_once(watch: FileWatch) -> None:
    assert [watch.changed() for _ in range(3)] == [False] * 3


def test_writing_replacing_and_removing_are_seen_once(watch: FileWatch, path: Path) -> None:
    path.write_text("two")
    assert [watch.changed(), watch.changed()] == [True, False]
    other = path.with_name("other")
    other.write_text("two")
    other.replace(path)
    assert [watch.changed(), watch.changed()] == [True, False]
    path.unlink()
    assert [watch.changed(), watch.changed()] == [True, False]
    path.write_text("two")
    assert [watch.changed(), watch.changed()] == [True, False]


def test_a_link_that_points_elsewhere_is_seen(watch: FileWatch, path: Path) -> None:
    target = path.with_name("target")
    target.write_text("one")
    path.unlink()
    path.symlink_to(target)
    assert [watch.changed(), watch.changed()] == [True, False]


def test_a_file_is_read_again_until_its_times_can_be_relied_on(path: Path) -> None:
    clock = Clock(path.stat().st_ctime_ns / 1e9)
    watch = FileWatch(path, clock=clock)
    assert [watch.changed() for _ in range(3)] == [True] * 3
    clock.advance(SETTLED_SECONDS + 1)
    assert [watch.changed(), watch.changed()] == [True, False]
