"""States in files: as they were, or set aside."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from dovetail.node.common.cpus import CpuSet
from dovetail.node.plugins.common.store import PluginStore, StateNotSaved
from dovetail.node.plugins.cpu.state import CpuHolding, CpuState
from dovetail.node.plugins.memory.state import MemoryHolding, MemoryState
from dovetail.node.plugins.nic.state import NicHolding, NicState

CPU = CpuState(
    pools={"online": CpuSet.parse("0-3"), "shared": CpuSet()},
    wanted={"online": 4},
    holdings=(
        CpuHolding(
            pod="uid",
            namespace="default",
            name="pod",
            container="main",
            role="own",
            amount=Fraction(3, 2),
            pool="online",
            cpus=CpuSet.parse("2-3"),
        ),
    ),
)
MEMORY = MemoryState(
    holdings=(
        MemoryHolding(
            pod="uid",
            namespace="default",
            name="pod",
            container="main",
            role="own",
            wanted={"memory": 237_182_648_320},
            nodes=CpuSet([1]),
            given={"memory": {1: 237_182_648_320}},
        ),
    )
)
NIC = NicState(
    holdings=(
        NicHolding(
            pod="uid", namespace="default", name="pöd", container="main", role="", nic="eth0"
        ),
    )
)


@pytest.mark.parametrize("state", [CPU, MEMORY, NIC, CpuState()])
def test_what_is_saved_is_loaded(tmp_path: Path, state: CpuState | MemoryState | NicState) -> None:
    store = PluginStore(tmp_path / "state.json")
    store.save(state)
    assert store.load(type(state)) == state


def test_people_can_read_it(tmp_path: Path) -> None:
    store = PluginStore(tmp_path / "state.json")
    store.save(CPU)
    document = json.loads(store.path.read_text())
    assert document["version"] == 1
    assert document["data"]["pools"] == {"online": "0-3", "shared": ""}
    assert document["data"]["holdings"][0]["amount"] == "3/2"


def test_nothing_is_there_at_first(tmp_path: Path) -> None:
    assert PluginStore(tmp_path / "state.json").load(CpuState) is None


def altered(text: str) -> bytes:
    return text.replace("online", "onlime").encode()


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda text: text[: len(text) // 2].encode(), id="torn"),
        pytest.param(altered, id="altered"),
        pytest.param(lambda _: b"\xff\xfe\x00", id="garbage"),
        pytest.param(lambda _: b"[]", id="another document"),
        pytest.param(
            lambda text: text.replace('"version": 1', '"version": 9').encode(), id="newer"
        ),
        pytest.param(lambda _: b"", id="empty"),
    ],
)
def test_a_corrupt_file_is_set_aside(tmp_path: Path, spoil: object) -> None:
    store = PluginStore(tmp_path / "state.json")
    for number in (1, 2):
        store.save(CPU)
        store.path.write_bytes(spoil(store.path.read_text()))  # type: ignore[operator]
        spoiled = store.path.read_bytes()
        assert store.load(CpuState) is None
        assert (tmp_path / f"state.json.corrupt-{number}").read_bytes() == spoiled
        assert not store.path.exists()


def test_a_failed_write_is_told_and_leaves_the_file(tmp_path: Path) -> None:
    store = PluginStore(tmp_path / "gone" / "state.json")
    with pytest.raises(StateNotSaved, match=r"could not be written to .*state\.json"):
        store.save(CPU)
