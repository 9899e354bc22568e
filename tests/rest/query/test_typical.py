"""The file of typical requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.core.errors import Malformed
from dovetail.rest.query.typical import read_typical


def test_requests_and_how_often_they_come(tmp_path: Path) -> None:
    file = tmp_path / "typical.jsonl"
    file.write_text(
        '{"query": "resources=VCPU:2"}\n'
        "\n"
        '{"query": "resources=VCPU:8&resources_G=VGPU:1", "count": 3}\n'
        '{"query": "resources=VCPU:2&limit=5", "count": 8}\n'
    )
    found = read_typical(file).requests
    assert [count for _, count in found] == [9, 3]
    assert found[0][0].groups[0].resources == {"VCPU": 2}


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ('{"query": "resources=VCPU"}', "line 2: .*resources"),
        ('{"query": "resources=VCPU:1", "count": 0}', "line 2: .*count"),
        ('{"queries": []}', "line 2: .*quer"),
        ("resources=VCPU:1", "line 2: "),
        ('{"query": "resources_G=VCPU:1&class_G=large"}', "line 2: `class` is not known here"),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path: Path, line: str, word: str) -> None:
    file = tmp_path / "typical.jsonl"
    file.write_text(f'{{"query": "resources=VCPU:2"}}\n{line}\n')
    with pytest.raises(Malformed, match=word):
        read_typical(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Malformed, match="typical requests"):
        read_typical(tmp_path / "nowhere")
