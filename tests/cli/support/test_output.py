"""Tables line up, YAML reads back as what was written, names cannot steer a terminal."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml as reference
from click import unstyle
from hypothesis import given
from hypothesis import strategies as st

from dovetail.cli.support import output, yaml_text
from tests.cli.conftest import commands
from tests.support.paths import DOVETAIL

DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(DOCUMENTS)
def test_yaml_reads_back_as_what_was_written(document: Any) -> None:
    assert reference.safe_load(yaml_text.dumps(document)) == document


@pytest.mark.parametrize(
    "text", ["no", "Yes", "null", "1e3", "~", "- a", "a: b", "", " x", "=", "<<"]
)
def test_words_that_yaml_would_take_for_something_else_are_quoted(text: str) -> None:
    assert reference.safe_load(yaml_text.dumps({text: [text]})) == {text: [text]}


def test_yaml_is_easy_to_read() -> None:
    document = {"hosts": [{"name": "host-1", "used": 3}, {"name": "2", "used": 0}], "none": []}
    assert yaml_text.dumps(document) == (
        'hosts:\n  - name: host-1\n    used: 3\n  - name: "2"\n    used: 0\n"none": []'
    )


def test_numbers_stand_to_the_right_and_words_to_the_left() -> None:
    lines = output.table(["NAME", "USED"], [["a", 1234567], ["long name", None], ["b", 0]])
    assert [unstyle(line) for line in lines] == [
        "NAME            USED",
        "a          1,234,567",
        "long name",
        "b                  0",
    ]


@given(st.text())
def test_nothing_printed_can_steer_a_terminal(text: str) -> None:
    assert output.printable(text).isprintable()


def test_no_color_turns_colour_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert output.paint("x", "red") != "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.paint("x", "red") == "x"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the machine has no /dev/full")
@pytest.mark.parametrize("command", [("usage",), ("usage", "-o", "yaml"), ("dump",)])
def test_a_full_disk_is_told_in_a_line(demo: str, command: tuple[str, ...]) -> None:
    options = ["--server", demo, "--token", "admin"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [DOVETAIL, *command, *options], stdout=full, stderr=subprocess.PIPE, check=False
        )
    said = b"Error: standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (6, said)


def test_a_reader_that_has_seen_enough_is_no_error(demo: str) -> None:
    options = ["--server", demo, "--token", "admin"]
    with subprocess.Popen(
        [DOVETAIL, "tree", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_file_that_cannot_be_written_is_named(demo: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for target in (tmp_path / "missing/dump.jsonl", tmp_path / "file/dump.jsonl"):
        found = commands(demo)("dump", "-f", str(target))
        assert found.exit_code == 6
        assert f"--file {target}: N" in found.stderr
