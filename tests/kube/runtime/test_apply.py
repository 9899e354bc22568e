"""Fields that are ours: all that is said, nothing that is not, and never anybody else's."""

from __future__ import annotations

import pytest

from dovetail.kube.api.port import ApiConflict
from dovetail.kube.runtime.apply import FieldOwner
from dovetail.podfit.objects import Node, Pod
from tests.support.kube.memory import MemoryApi

pytestmark = pytest.mark.virtual_time


async def test_what_is_left_out_is_taken_away_and_what_others_own_stays() -> None:
    api = MemoryApi()
    await api.create(Node, {"metadata": {"name": "n", "labels": {"theirs": "1"}}})
    ours = FieldOwner(api, "dovetail-machines")
    await ours.put(Node, "n", {"metadata": {"labels": {"a": "1", "b": "1"}}})
    node = await ours.put(Node, "n", {"metadata": {"labels": {"b": "2"}}})
    assert node.metadata.labels == {"theirs": "1", "b": "2"}


async def test_saying_the_same_again_changes_nothing() -> None:
    api = MemoryApi()
    ours = FieldOwner(api, "dovetail-machines")
    once = await ours.put(Node, "n", {"metadata": {"labels": {"a": "1"}}})
    assert await ours.put(Node, "n", {"metadata": {"labels": {"a": "1"}}}) == once


async def test_two_managers_share_a_field_they_agree_on_and_fight_only_if_told_to() -> None:
    api = MemoryApi()
    one, two = FieldOwner(api, "dovetail-machines"), FieldOwner(api, "dovetail-node-pool")
    await one.put(Node, "n", {"metadata": {"labels": {"a": "1"}}})
    await two.put(Node, "n", {"metadata": {"labels": {"a": "1"}}}, force=False)
    await one.put(Node, "n", {})
    assert (await api.get(Node, "n")).metadata.labels == {"a": "1"}
    with pytest.raises(ApiConflict):
        await one.put(Node, "n", {"metadata": {"labels": {"a": "2"}}}, force=False)
    await one.put(Node, "n", {"metadata": {"labels": {"a": "2"}}})
    await two.put(Node, "n", {})
    assert (await api.get(Node, "n")).metadata.labels == {"a": "2"}


async def test_an_owner_is_named_as_the_one_controller() -> None:
    api = MemoryApi()
    await api.create(Node, {"metadata": {"name": "n"}})
    node = await api.get(Node, "n")
    ours = FieldOwner(api, "dovetail-machines")
    pod = await ours.put(Pod, "p", {"spec": {}}, namespace="here", owner=node)
    (reference,) = pod.metadata.owner_references
    assert (reference.kind, reference.name, reference.uid) == ("Node", "n", node.metadata.uid)
    assert reference.controller
    assert pod.key == "here/p"


async def test_status_is_applied_apart() -> None:
    api = MemoryApi()
    ours = FieldOwner(api, "dovetail-machines")
    condition = {"type": "Ready", "status": "True"}
    await ours.put(Node, "n", {"metadata": {"labels": {"a": "1"}}})
    node = await ours.put(Node, "n", {"status": {"conditions": [condition]}}, sub="status")
    assert node.metadata.labels == {"a": "1"}
    assert [each.type for each in node.status.conditions] == ["Ready"]
    theirs = {"status": {"conditions": [{"type": "Disk", "status": "True"}]}}
    node = await FieldOwner(api, "dovetail-node-pool").put(Node, "n", theirs, sub="status")
    assert sorted(each.type for each in node.status.conditions) == ["Disk", "Ready"]
