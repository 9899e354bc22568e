"""Attributes of providers, and definitions of resource classes."""

from __future__ import annotations

import pytest

from dovetail.ledger import Ledger, attributes, device_classes, providers
from dovetail.ledger.device_classes import DefinitionDiffers, DefinitionNotFound
from tests.ledger.world import get, make


def test_attributes_are_replaced_as_a_whole(ledger: Ledger) -> None:
    host = make(ledger, "host")
    for wanted in ({"a": "1", "b": "2"}, {"b": "3", "c": ""}, {}):
        ledger.write(lambda tx, w=wanted: attributes.assign(tx, host, w)).result()  # type: ignore[misc]
        assert ledger.read(lambda tx: attributes.of_provider(tx, host)).result() == wanted
    assert get(ledger, host).generation == 3


def test_the_same_attributes_again_change_nothing(ledger: Ledger) -> None:
    host = make(ledger, "host")
    ledger.write(lambda tx: attributes.assign(tx, host, {"a": "1"})).result()
    cursor = ledger.poll(None).result()
    assert cursor
    ledger.write(lambda tx: attributes.assign(tx, host, {"a": "1"})).result()
    assert get(ledger, host).generation == 1
    delta = ledger.poll(cursor.cursor).result()
    assert delta is None or delta.trees is None


def test_a_provider_goes_with_its_attributes(ledger: Ledger) -> None:
    host = make(ledger, "host")
    ledger.write(lambda tx: attributes.assign(tx, host, {"a": "1"})).result()
    ledger.write(lambda tx: providers.delete(tx, host.uuid)).result()
    assert ledger.read(lambda tx: attributes.of_provider(tx, host)).result() == {}


def test_attributes_are_part_of_the_tree_that_followers_see(ledger: Ledger) -> None:
    host, other = make(ledger, "host"), make(ledger, "other")
    ledger.write(lambda tx: attributes.assign(tx, other, {"z": "9"})).result()
    start = ledger.poll(None).result()
    assert start
    assert start.forest
    assert start.forest.attributes == [(other.id, "z", "9")]
    ledger.write(lambda tx: attributes.assign(tx, host, {"a": "1"})).result()
    delta = ledger.poll(start.cursor).result()
    assert delta
    assert delta.trees
    assert delta.trees.attributes == [(host.id, "a", "1")]


def test_a_definition_does_not_change(ledger: Ledger) -> None:
    def define(document: str) -> bool:
        return ledger.write(lambda tx: device_classes.define(tx, "nic", document)).result()[1]

    assert define("{}")
    assert not define("{}")
    with pytest.raises(DefinitionDiffers, match="'nic' is defined otherwise"):
        define('{"x": 1}')
    assert ledger.write(lambda tx: device_classes.drop(tx, "nic")).result()
    assert not ledger.write(lambda tx: device_classes.drop(tx, "nic")).result()
    with pytest.raises(DefinitionNotFound, match="'nic'"):
        ledger.read(lambda tx: device_classes.get(tx, "nic")).result()
    assert define('{"x": 1}')


def test_definitions_are_told_to_followers_and_only_when_they_changed(ledger: Ledger) -> None:
    start = ledger.poll(None).result()
    assert start
    assert start.definitions == {}
    make(ledger, "host")
    delta = ledger.poll(start.cursor).result()
    assert delta
    assert delta.definitions is None
    ledger.write(lambda tx: device_classes.replace(tx, "nic", "{}")).result()
    delta = ledger.poll(delta.cursor).result()
    assert delta
    assert (delta.definitions, delta.trees) == ({"nic": "{}"}, None)
