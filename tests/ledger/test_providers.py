"""Trees: making, moving and deleting providers."""

from __future__ import annotations

import pytest

from dovetail.core.errors import (
    BadParent,
    ProviderExists,
    ProviderInUse,
    ProviderIsParent,
    ProviderNotFound,
)
from dovetail.core.provider import Provider
from dovetail.ledger import Ledger, providers
from tests.ledger.world import claim, get, make, new


def move(ledger: Ledger, provider: Provider, parent: Provider | None, *, free: bool = True) -> None:
    above = parent.uuid if parent else None
    ledger.write(lambda tx: providers.move(tx, get(ledger, provider), above, free=free)).result()


def test_a_ledger_is_empty_until_it_has_a_provider(ledger: Ledger) -> None:
    assert ledger.read(providers.is_empty).result()
    make(ledger, "root")
    assert not ledger.read(providers.is_empty).result()


def test_children_know_their_root(ledger: Ledger) -> None:
    root = make(ledger, "root")
    child = make(ledger, "child", root)
    grandchild = make(ledger, "grandchild", child)
    assert root.root_uuid == root.uuid
    assert (grandchild.parent_uuid, grandchild.root_uuid) == (child.uuid, root.uuid)


def test_names_and_uuids_are_taken_once(ledger: Ledger) -> None:
    host = make(ledger, "host")
    with pytest.raises(ProviderExists, match="name: host"):
        make(ledger, "host")
    with pytest.raises(ProviderExists, match=f"uuid: {host.uuid}"):
        ledger.write(lambda tx: providers.create(tx, "other", host.uuid, None)).result()


def test_a_parent_has_to_exist_and_be_another(ledger: Ledger) -> None:
    uuid = new()
    with pytest.raises(BadParent, match="does not exist"):
        ledger.write(lambda tx: providers.create(tx, "host", uuid, new())).result()
    with pytest.raises(BadParent, match="cannot be same as UUID"):
        ledger.write(lambda tx: providers.create(tx, "host", uuid, uuid)).result()


def test_moving_a_subtree_takes_everything_below_along(ledger: Ledger) -> None:
    one, two = make(ledger, "one"), make(ledger, "two")
    child = make(ledger, "child", one)
    grandchild = make(ledger, "grandchild", child)
    move(ledger, child, two)
    assert get(ledger, grandchild).root_uuid == two.uuid
    move(ledger, child, None)
    assert get(ledger, grandchild).root_uuid == child.uuid


def test_no_loops(ledger: Ledger) -> None:
    root = make(ledger, "root")
    child = make(ledger, "child", root)
    with pytest.raises(BadParent, match="loop"):
        move(ledger, root, child)
    with pytest.raises(BadParent, match="loop"):
        move(ledger, root, root)


def test_older_clients_may_only_give_a_root_a_parent(ledger: Ledger) -> None:
    one, two = make(ledger, "one"), make(ledger, "two")
    move(ledger, two, one, free=False)
    with pytest.raises(BadParent, match="re-parenting"):
        move(ledger, two, make(ledger, "three"), free=False)
    with pytest.raises(BadParent, match="un-parenting"):
        move(ledger, two, None, free=False)


def test_what_is_in_use_or_a_parent_stays(ledger: Ledger) -> None:
    root = make(ledger, "root")
    child = make(ledger, "child", root, VCPU=1)
    claim(ledger, (child, {"VCPU": 1}))
    with pytest.raises(ProviderIsParent):
        ledger.write(lambda tx: providers.delete(tx, root.uuid)).result()
    with pytest.raises(ProviderInUse):
        ledger.write(lambda tx: providers.delete(tx, child.uuid)).result()
    with pytest.raises(ProviderNotFound):
        ledger.write(lambda tx: providers.delete(tx, new())).result()
