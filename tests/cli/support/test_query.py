"""Options and queries, and what they become."""

from __future__ import annotations

from typing import Any

import click
import pytest

from dovetail.cli.support.query import query_pairs

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
        (
            {"query": "resources=VCPU:1&required=A", "resources": ("FPGA:1",), "traits": ("B",)},
            [("resources", "VCPU:1,FPGA:1"), ("required", "A"), ("required", "B")],
        ),
        (
            {"groups": ("VM=VCPU:1,A", "VM=MEMORY_MB:2,B")},
            [("resources_VM", "VCPU:1,MEMORY_MB:2"), ("required_VM", "A"), ("required_VM", "B")],
        ),
        (
            {"resources": ("DISK_GB:1",), "groups": ("VM=VCPU:1",), "in_tree": "host"},
            [("resources", "DISK_GB:1"), ("resources_VM", "VCPU:1"), ("in_tree", "host")],
        ),
        (
            {"groups": ("NIC=CUSTOM_NIC", "VM=VCPU:1", "ACC=FPGA:1"), "in_tree": "host"},
            [
                ("required_NIC", "CUSTOM_NIC"),
                ("resources_VM", "VCPU:1"),
                ("resources_ACC", "FPGA:1"),
                ("in_tree_VM", "host"),
            ],
        ),
    ],
)
def test_what_is_asked(given: dict[str, Any], pairs: list[tuple[str, str]]) -> None:
    assert query_pairs(**{**NOTHING, **given}) == pairs


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "say what to look for"),
        ({"query": "VCPU:8"}, "'VCPU:8' is no query"),
        ({"groups": ("FPGA:1",)}, "should read as ACC=FPGA:1"),
        ({"groups": ("A=",)}, "should read as ACC=FPGA:1"),
        ({"groups": ("V M=VCPU:1",)}, "'V M' is no name of a group"),
        ({"groups": ("A=VCPU:1",), "subtrees": ("A,",)}, "'' is no name of a group"),
        ({"resources": ("VCPU:1", "VCPU:2")}, "resources has VCPU twice"),
        ({"query": "resources_A=VCPU:1", "groups": ("A=VCPU:2",)}, "resources_A has VCPU twice"),
        ({"query": "resources=VCPU:1&limit=5", "limit": 2}, "limit is given twice: 5 and 2"),
        (
            {"query": "resources=VCPU:1&in_tree=a", "in_tree": "b"},
            "in_tree is given twice: a and b",
        ),
    ],
)
def test_what_is_not_understood(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(click.UsageError, match=complaint):
        query_pairs(**{**NOTHING, **given})
