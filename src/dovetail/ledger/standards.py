"""Standard names: the traits and resource classes that every Placement client expects."""

from __future__ import annotations

import os_resource_classes
import os_traits

from dovetail.ledger.database.protocol import Change, Transaction

CUSTOM_PREFIX = "CUSTOM_"
FIRST_CUSTOM_CLASS_ID = 10_000
"""Ids below belong to the standard classes, in the order of the library that lists them."""


def sync_standard_names(tx: Transaction) -> None:
    """Add the standard names that a newer library brought; cheap when there are none."""
    classes = {name for (name,) in tx.rows("SELECT name FROM resource_classes")}
    traits = {name for (name,) in tx.rows("SELECT name FROM traits")}
    new_classes = [
        (number, name, tx.now)
        for number, name in enumerate(os_resource_classes.STANDARDS)
        if name not in classes
    ]
    new_traits = [(name, tx.now) for name in os_traits.get_traits() if name not in traits]
    if new_classes or new_traits:
        tx.many("INSERT INTO resource_classes (id, name, changed_at) VALUES (?, ?, ?)", new_classes)
        tx.many("INSERT INTO traits (name, created_at) VALUES (?, ?)", new_traits)
        tx.changed(Change.NAMES)
