"""Options and queries, and what they become."""

from __future__ import annotations

from typing import Any

import click
import pytest

from dovetail.cli.query import built

NOTHING: dict[str, Any] = {
    "query": None,
    "resources": (),
    "traits": (),
    "groups": (),
    "subtrees": (),
    "in_tree": None,
    "limit": None,
    "rank": None,
    "scores": False,
}


@pytest.mark.parametrize(
    ("given", "pairs"),
    [
        ({"resources": ("VCPU:1", "DISK_GB:2")}, [("resources", "VCPU:1,DISK_GB:2")]),
        (
            {"resources": ("VCPU:1",), "traits": ("A", "!B")},
            [("resources", "VCPU:1"), ("required", "A,!B")],
        ),
        (
            {"groups": ("ACC=FPGA:1,X,!Y", "_N=Z"), "subtrees": ("ACC,_N,!M",)},
            [
                ("resources_ACC", "FPGA:1"),
                ("required_ACC", "X,!Y"),
                ("required_N", "Z"),
                ("same_subtree", "_ACC,_N,!_M"),
            ],
        ),
        (
            {"query": "resources=VCPU:1", "limit": 5, "rank": "pack", "scores": True},
            [("resources", "VCPU:1"), ("limit", "5"), ("rank", "pack"), ("scores", "1")],
        ),
        (
            {"query": "http://x/allocation_candidates?resources=VCPU%3A1&required=A"},
            [("resources", "VCPU:1"), ("required", "A")],
        ),
    ],
)
def test_what_is_asked(given: dict[str, Any], pairs: list[tuple[str, str]]) -> None:
    assert built(**{**NOTHING, **given}) == pairs


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "say what to look for"),
        ({"query": "VCPU:8"}, "'VCPU:8' is no query"),
        ({"groups": ("FPGA:1",)}, "should read as ACC=FPGA:1"),
        ({"groups": ("A=",)}, "should read as ACC=FPGA:1"),
    ],
)
def test_what_is_not_understood(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(click.UsageError, match=complaint):
        built(**{**NOTHING, **given})
