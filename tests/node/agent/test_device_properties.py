"""Properties of devices from a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from dovetail.node.agent.device_properties import BadProperties, DeviceProperties, parse

GPU = "vendor.com/gpu"

TOML = """
["vendor.com/gpu"."*"]
model = "A100"
memory = "40G"

["vendor.com/gpu"."GPU-8*"]
memory = "80G"
slots = 2
nvlink = true
"""

YAML = """
vendor.com/gpu:
  "*": {model: A100, memory: 40G}
  GPU-8*: {memory: 80G, slots: 2, nvlink: true}
"""


@pytest.mark.parametrize(("name", "text"), [("p.toml", TOML), ("p.yaml", YAML)])
def test_all_that_fits_counts_and_the_later_more(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    properties = DeviceProperties(tmp_path / name)
    properties.look()
    assert properties.of(GPU, "GPU-8f") == {
        "model": "A100",
        "memory": "80G",
        "slots": "2",
        "nvlink": "true",
    }
    assert properties.of(GPU, "0000:3b") == {"model": "A100", "memory": "40G"}
    assert properties.of("other.com/gpu", "GPU-8f") == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[", "p.toml: Invalid"),
        ('"vendor.com/gpu" = 3', "p.toml: vendor.com/gpu: a table is expected, by IDs of devices"),
        ('["vendor.com/gpu"]\na = 1', "p.toml: vendor.com/gpu: a: a table is expected, by prop"),
        ('["v.com/g".a]\nm = [1]', "p.toml: v.com/g: a: m: a text, a number, true or false is"),
        ('["v.com/g".a]\nKind = "x"', "p.toml: v.com/g: a: 'Kind' cannot be the name"),
        ('["v.com/g".a]\nid = "x"', "p.toml: v.com/g: a: 'id' cannot be the name"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, why: str) -> None:
    with pytest.raises(BadProperties) as refused:
        parse(text, "p.toml")
    assert str(refused.value).startswith(why)


@pytest.mark.parametrize("text", ["a: [", "- a", "1: {a: {b: c}}", "a: {1: {b: c}}"])
def test_nor_does_yaml_of_another_shape_do(text: str) -> None:
    with pytest.raises(BadProperties):
        parse(text, "p.yaml")


def test_a_file_that_goes_bad_leaves_what_was_read(tmp_path: Path) -> None:
    file = tmp_path / "p.toml"
    file.write_text(TOML)
    properties = DeviceProperties(file)
    properties.look()
    with capture_logs() as logs:
        file.write_text("[" * 100)
        properties.look()
        properties.look()
        assert properties.of(GPU, "x")["memory"] == "40G"
        file.unlink()
        properties.look()
        assert properties.of(GPU, "x")["memory"] == "40G"
    assert [each["log_level"] for each in logs] == ["error", "error"]
    file.write_text(TOML.replace("40G", "41G"))
    properties.look()
    assert properties.of(GPU, "x")["memory"] == "41G"
