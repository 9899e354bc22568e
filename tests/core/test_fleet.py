"""Fleet documents: how they are cut does not matter, where they are wrong is told."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.core.errors import BadFleet
from dovetail.core.fleet import FleetReader

DOCUMENT = b"\n".join(
    json.dumps(line).encode()
    for line in (
        {"consumer": "11111111111111111111111111111111", "allocations": {"n0": {"VCPU": 3}}},
        {"name": "host", "children": [{"name": "n0", "inventories": {"VCPU": 4}}]},
        {"name": "späte Höhle", "traits": ["CUSTOM_B", "CUSTOM_A", "CUSTOM_B"]},
    )
)


@given(st.lists(st.integers(0, len(DOCUMENT)), max_size=8))
def test_pieces_may_be_cut_anywhere(cuts: list[int]) -> None:
    reader = FleetReader()
    edges = [0, *sorted(cuts), len(DOCUMENT)]
    for start, end in pairwise(edges):
        reader.feed(DOCUMENT[start:end])
    plan = reader.finish()
    assert [provider.name for provider in plan.providers] == ["host", "n0", "späte Höhle"]
    assert plan.providers[1].parent == 0
    assert plan.providers[1].used == {"VCPU": 3}
    assert plan.providers[2].traits == ["CUSTOM_A", "CUSTOM_B"]
    assert plan.consumers[0].uuid == "11111111-1111-1111-1111-111111111111"


def test_an_empty_document_is_an_empty_plan() -> None:
    reader = FleetReader()
    reader.feed(b"\n  \n")
    assert reader.finish().providers == []


@given(st.binary(max_size=200))
def test_garbage_is_refused_with_a_line(garbage: bytes) -> None:
    reader = FleetReader()
    with pytest.raises(BadFleet, match="line 2"):
        reader.feed(b'{"name": "good"}\n[' + garbage.replace(b"\n", b"") + b"\n")


def test_deep_nesting_is_refused() -> None:
    reader = FleetReader()
    with pytest.raises(BadFleet):
        reader.feed(b'{"name":"x","children":[' * 5000 + b"\n")
