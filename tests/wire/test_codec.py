"""What the wire tells and our structs must not lose, and what it must not get away with."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from dovetail.node.wire.registration import PluginInfo
from dovetail.node.wire.resource_plugin import (
    ContainerType,
    GetResourcesAllocationResponse,
    ListOfTopologyHints,
    ResourceHintsResponse,
    ResourceRequest,
    TopologyHint,
)
from dovetail.wire.codec import BadMessage, decode, encode


def field(number: int, data: bytes) -> bytes:
    """One that has a length, put together by hand."""
    return bytes([number << 3 | 2, len(data)]) + data


KEY = field(1, b"cpu")


class TestHints:
    """No preference and no possibility look alike to most protobuf libraries."""

    def test_a_key_without_a_value_is_no_preference(self) -> None:
        assert decode(ResourceHintsResponse, field(10, KEY)).resource_hints == {"cpu": None}

    def test_a_key_with_an_empty_value_is_no_possibility(self) -> None:
        told = decode(ResourceHintsResponse, field(10, KEY + field(2, b"")))
        assert told.resource_hints == {"cpu": ListOfTopologyHints()}

    def test_no_key_is_no_entry(self) -> None:
        assert decode(ResourceHintsResponse, b"").resource_hints == {}

    def test_both_are_written_as_they_are_read(self) -> None:
        for entry in (KEY, KEY + field(2, b"")):
            data = field(10, entry)
            assert encode(decode(ResourceHintsResponse, data)) == data

    def test_nodes_may_be_packed_or_not(self) -> None:
        packed, loose = field(1, bytes([0, 3])), bytes([1 << 3, 0, 1 << 3, 3])
        for data in (packed, loose):
            assert decode(TopologyHint, data).nodes == (0, 3)


def test_fields_that_are_not_known_are_no_fault() -> None:
    assert decode(PluginInfo, field(2, b"cpu") + field(14, b"later")) == PluginInfo(name="cpu")


def test_of_a_key_that_comes_twice_the_last_counts() -> None:
    twice = field(12, field(1, b"a") + field(2, b"1")) + field(12, field(1, b"a") + field(2, b"2"))
    assert decode(ResourceRequest, twice).labels == {"a": "2"}


def test_equal_messages_have_equal_bytes() -> None:
    one = ResourceRequest(labels={"a": "1", "b": "2"})
    other = ResourceRequest(labels={"b": "2", "a": "1"})
    assert encode(one) == encode(other)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (bytes([5 << 3, 9]), "no container is of type 9"),
        (field(1, b"\xff\xfe"), "no UTF-8"),
        (b"\x0a\x05abc", "shorter than it says"),
        (b"\x0b", "a group that never ends"),
        (b"\xff" * 11, "no varint is that long"),
        (bytes([0, 0]), "fields are numbered from 1"),
    ],
)
def test_bytes_that_are_no_message(data: bytes, why: str) -> None:
    with pytest.raises(BadMessage, match=f"{len(data)} bytes are no ResourceRequest"):
        decode(ResourceRequest, data)


def test_types_of_containers_have_the_published_numbers() -> None:
    assert [each.name for each in sorted(ContainerType)] == ["INIT", "MAIN", "SIDECAR", "EPHEMERAL"]


@given(some.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_bad_message(data: bytes) -> None:
    for each in (ResourceRequest, ResourceHintsResponse, GetResourcesAllocationResponse):
        try:
            again = encode(decode(each, data))
        except BadMessage:
            continue
        assert encode(decode(each, again)) == again
