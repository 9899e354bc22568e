"""The state in a file: what was written is what is read, or one is told why not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.node.state.checkpoint import NAME, Checkpoint, checksum, decode_state, encode_state
from dovetail.node.state.pod_state import AgentState, ContainerHolding, PodState
from dovetail.node.wire.resource_plugin import (
    ListOfTopologyHints,
    Mount,
    ResourceAllocationInfo,
    ResourcePluginOptions,
    TopologyHint,
)

texts = st.text(max_size=5)
infos = st.builds(
    ResourceAllocationInfo,
    oci_property_name=texts,
    is_scalar_resource=st.booleans(),
    allocated_quantity=st.floats(allow_nan=False, allow_infinity=False),
    allocation_result=texts,
    envs=st.dictionaries(texts, texts, max_size=3),
    resource_hints=st.none()
    | st.builds(
        ListOfTopologyHints,
        hints=st.lists(
            st.builds(TopologyHint, nodes=st.tuples(st.integers(0, 7)), preferred=st.booleans()),
            max_size=2,
        ).map(tuple),
    ),
    topology_assignments=st.dictionaries(st.integers(0, 9), st.integers(0, 2**62), max_size=3),
    mounts=st.tuples(st.builds(Mount, container_path=texts)),
)
pods = st.builds(
    PodState,
    uid=texts,
    namespace=texts,
    name=texts,
    labels=st.dictionaries(texts, texts, max_size=3),
    admitted=st.booleans(),
    plugins=st.lists(texts, max_size=2).map(tuple),
    containers=st.dictionaries(
        texts,
        st.builds(ContainerHolding, allocations=st.dictionaries(texts, infos, max_size=2)),
        max_size=2,
    ),
    at=st.floats(0, 2e9),
)
states = st.builds(
    AgentState,
    pods=st.lists(pods, max_size=2).map(lambda found: {each.uid: each for each in found}),
    removals=st.dictionaries(texts, st.tuples(texts), max_size=2),
    plugins=st.dictionaries(texts, st.just(ResourcePluginOptions(need_reconcile=True))),
)


def pod(uid: str, *, admitted: bool = True) -> PodState:
    return PodState(uid=uid, namespace="n", name=uid, admitted=admitted, plugins=("cpu",))


def of(*found: PodState) -> AgentState:
    return AgentState(pods={each.uid: each for each in found})


@given(states)
def test_any_state_is_read_as_it_was_written(state: AgentState) -> None:
    assert decode_state(encode_state(state)) == state


def test_equal_states_have_equal_bytes_however_they_came_about() -> None:
    one, other = of(pod("a"), pod("b")), of(pod("b"), pod("a"))
    assert encode_state(one) == encode_state(other)


def test_the_file_says_its_version_and_checksum(tmp_path: Path) -> None:
    Checkpoint(tmp_path).save(of(pod("a")))
    found = json.loads((tmp_path / NAME).read_text())
    assert list(found) == ["version", "checksum", "data"]
    assert found["version"] == 1
    assert found["checksum"].startswith("sha256:")
    assert found["data"]["pods"]["a"]["plugins"] == ["cpu"]


def test_without_a_file_one_begins_with_nothing(tmp_path: Path) -> None:
    assert Checkpoint(tmp_path).load() == (AgentState(), ())


def test_the_one_before_is_kept(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    for uid in "abc":
        checkpoint.save(of(pod(uid)))
    assert decode_state((tmp_path / NAME).read_bytes()) == of(pod("c"))
    assert decode_state((tmp_path / f"{NAME}.last").read_bytes()) == of(pod("b"))


def other_version(good: bytes) -> bytes:
    return good.replace(b'"version":1', b'"version":2')


def other_data(good: bytes) -> bytes:
    return good.replace(b'"cpu"', b'"gpu"')


def other_shape(good: bytes) -> bytes:
    data = b'{"pods":[]}'
    return b'{"version":1,"checksum":"%s","data":%s}' % (checksum(data).encode(), data)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (other_version, "it has version 2, not 1"),
        (other_data, "checksum"),
        (other_shape, "not as it was written"),
        (lambda good: good[:-20], "not as it was written"),
        (lambda good: b"", "not as it was written"),
        (lambda good: b"\xff\xfe", "not as it was written"),
        (lambda good: b'{"version":1,"data":' + b"[" * 100_000, "not as it was written"),
    ],
    ids=["version", "data", "shape", "torn", "empty", "bytes", "deep"],
)
def test_a_bad_file_is_set_aside_and_the_one_before_is_used(
    tmp_path: Path, spoil: object, words: str
) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.save(of(pod("a")))
    checkpoint.save(of(pod("b")))
    path = tmp_path / NAME
    spoiled = spoil(path.read_bytes())  # type: ignore[operator]
    path.write_bytes(spoiled)
    state, troubles = Checkpoint(tmp_path).load()
    assert state == of(pod("a"))
    assert words in troubles[0]
    assert (tmp_path / f"{NAME}.corrupt-1").read_bytes() == spoiled
    checkpoint.save(of(pod("c")))
    assert Checkpoint(tmp_path).load() == (of(pod("c")), ())


def test_a_file_that_somebody_removed_is_told_of(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.save(of(pod("a")))
    checkpoint.save(of(pod("b")))
    (tmp_path / NAME).unlink()
    state, (trouble,) = checkpoint.load()
    assert state == of(pod("a"))
    assert f"{NAME} is gone" in trouble
    assert "remove both files" in trouble


def test_two_bad_files_are_no_reason_not_to_start(tmp_path: Path) -> None:
    for name in (NAME, f"{NAME}.last", f"{NAME}.corrupt-1"):
        (tmp_path / name).write_text("?")
    state, troubles = Checkpoint(tmp_path).load()
    assert state == AgentState()
    assert len(troubles) == 2
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        f"{NAME}.corrupt-{number}" for number in (1, 2, 3)
    ]


def test_a_file_that_is_a_directory_is_no_reason_either(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    state, troubles = Checkpoint(tmp_path).load()
    assert state == AgentState()
    assert "Is a directory" in troubles[0]


def test_who_was_only_meant_to_be_admitted_is_taken_back(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.save(of(pod("a"), pod("b", admitted=False)))
    assert checkpoint.load().state == AgentState(pods={"a": pod("a")}, removals={"b": ("cpu",)})


def test_in_an_older_state_they_are_kept_for_they_may_run_by_now(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path)
    checkpoint.save(of(pod("b", admitted=False)))
    checkpoint.save(of(pod("b")))
    (tmp_path / NAME).write_text("?")
    assert checkpoint.load().state == of(pod("b"))


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    Checkpoint(tmp_path).save(of(pod("a")))

    def fail(path: Path, data: bytes) -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        Checkpoint(tmp_path, fail).save(of(pod("b")))
    assert Checkpoint(tmp_path).load().state == of(pod("a"))
