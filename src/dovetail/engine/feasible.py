"""Feasibility: constraint masks over columns narrow the fleet to trees that could serve a request.

A request becomes slots, each to be filled by one provider: one slot per suffixed group, one per
resource class of the unsuffixed group (its classes may come from different providers). For each
slot this finds the rows that can fill it, for their own tree and, if they share, for others. Each
constraint is a mask, decided once per distinct set of traits, aggregates or attributes; the whole
takes a few vector operations per constraint, linear in the rows that are left. The search and the
explainers call it. Necessary, not sufficient: how slots lie to each other is the combiner's.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from dovetail.core.columns import Column, Mask
from dovetail.core.request import Group, Request
from dovetail.engine.inventories import ClassInventories, RowNumbers
from dovetail.engine.snapshot import Snapshot
from dovetail.engine.work import Work, finished

NO_ROWS: RowNumbers = np.empty(0, np.int32)


class Slot(msgspec.Struct, frozen=True, eq=False):
    """One provider to be found, and the rows that qualify."""

    group: Group
    resources: Mapping[str, int]
    own: RowNumbers
    """Rows that may fill it in their own tree, ascending."""
    shared_tree: RowNumbers
    shared_row: RowNumbers
    """Pairs: in this tree this row of another tree may fill it; ascending by tree."""


class SlotWish(msgspec.Struct, frozen=True, eq=False):
    """What is asked of the provider of one slot."""

    group: Group
    resources: Mapping[str, int]

    @property
    def key(self) -> Hashable:
        """The same for slots that the same rows can fill."""
        return bool(self.group.suffix), tuple(self.resources.items()), conditions_key(self.group)


class WishRows(NamedTuple):
    """The rows that are as wished."""

    own: RowNumbers
    """For their own tree, ascending."""
    sharing: RowNumbers
    """For other trees, with which they share, ascending."""


Pairs = tuple[RowNumbers, RowNumbers]
"""Trees, and a row of another tree that shares with each."""


def slots_of(snapshot: Snapshot, request: Request) -> list[Slot]:
    return finished(slots_in_steps(snapshot, request))


def slots_in_steps(snapshot: Snapshot, request: Request) -> Work[list[Slot]]:
    """The slots of a request; yields after each that had to be looked for."""
    known: dict[Hashable, tuple[RowNumbers, Pairs]] = {}
    slots = []
    for wish in wishes_of(request):
        key = wish.key
        if key not in known:
            own, sharing = rows_as_wished(snapshot, wish)
            known[key] = own, pairs_as_wished(snapshot, wish, sharing)
            yield
        own, pairs = known[key]
        slots.append(Slot(wish.group, wish.resources, own, *pairs))
    return slots


def wishes_of(request: Request) -> Iterator[SlotWish]:
    for group in request.groups:
        if group.suffix:
            yield SlotWish(group, group.resources)
        else:
            for name, amount in group.resources.items():
                yield SlotWish(group, {name: amount})


def conditions_key(group: Group) -> Hashable:
    return (
        group.required if group.suffix else (),
        group.forbidden,
        group.member_of,
        group.not_member_of,
        group.in_tree,
        group.selectors,
        group.classes,
    )


def rows_as_wished(snapshot: Snapshot, wish: SlotWish, among: RowNumbers | None = None) -> WishRows:
    """All of them, or those among some rows, which are ascending."""
    if wish.group.suffix:
        return _granular_rows(snapshot, wish, among)
    return _spread_rows(snapshot, wish, among)


def _granular_rows(snapshot: Snapshot, wish: SlotWish, among: RowNumbers | None) -> WishRows:
    """A suffixed group: one provider meets all of it by itself."""
    group = wish.group
    rows = rows_with_room(snapshot, wish.resources, among)
    if group.required or group.forbidden:
        traits = trait_mask(snapshot, group.required, group.forbidden)
        rows = rows_with_set(rows, snapshot.traits, traits)
    if group.member_of or group.not_member_of:
        members = aggregate_mask(snapshot, group.member_of, group.not_member_of)
        rows = rows_with_set(rows, snapshot.aggregates, members)
    rows = rows_selected(snapshot, group, rows)
    if group.in_tree is not None:
        rows = rows_within(snapshot, rows, group.in_tree)
    return WishRows(rows, sharing_among(snapshot, rows))


def _spread_rows(snapshot: Snapshot, wish: SlotWish, among: RowNumbers | None) -> WishRows:
    """A class of the unsuffixed group. Required traits are met together, later."""
    group = wish.group
    rows = rows_with_room(snapshot, wish.resources, among)
    if group.forbidden:
        rows = rows_with_set(rows, snapshot.traits, trait_mask(snapshot, (), group.forbidden))
    rows = rows_selected(snapshot, group, rows)
    own, shared = by_membership(snapshot, group, rows)
    if group.in_tree is not None:
        return WishRows(rows_within(snapshot, own, group.in_tree), NO_ROWS)
    return WishRows(own, sharing_among(snapshot, shared))


def pairs_as_wished(snapshot: Snapshot, wish: SlotWish, sharing: RowNumbers) -> Pairs:
    pairs = shared_pairs(snapshot, sharing)
    if not wish.group.suffix and wish.group.not_member_of:
        pairs = pairs_outside(snapshot, pairs, wish.group.not_member_of)
    return pairs


def rows_with_set(rows: RowNumbers, sets: Column, wanted: Mask) -> RowNumbers:
    """The rows whose set, of traits, aggregates or attributes, is one of those wanted."""
    return rows.compress(wanted.take(sets.values.take(rows)))


def rows_selected(snapshot: Snapshot, group: Group, rows: RowNumbers) -> RowNumbers:
    """The rows whose attributes meet all that the group demands of them."""
    for selector in (*group.selectors, *(each.selector for each in group.classes)):
        rows = rows_with_set(
            rows, snapshot.attributes, snapshot.attribute_sets.selected_by(selector)
        )
    return rows


def by_membership(
    snapshot: Snapshot, group: Group, rows: RowNumbers
) -> tuple[RowNumbers, RowNumbers]:
    """Rows whose aggregates suit the unsuffixed group: for their own tree, and for sharing.

    What the root is a member of counts for its whole tree, not for the trees shared with.
    """
    if not group.member_of and not group.not_member_of:
        return rows, rows
    numbers = snapshot.aggregates.values
    own_sets = numbers[rows]
    root_sets = numbers[snapshot.tree_start.values[snapshot.tree.values[rows]]]
    inside = aggregate_mask(snapshot, group.member_of, ())
    clear = aggregate_mask(snapshot, (), group.not_member_of)
    own = (inside[own_sets] | inside[root_sets]) & clear[own_sets] & clear[root_sets]
    shared = inside[own_sets] & clear[own_sets]
    return rows[own], rows[shared]


def pairs_outside(snapshot: Snapshot, pairs: Pairs, aggregates: Iterable[str]) -> Pairs:
    """The pairs of (tree, row) whose tree has a root in none of the aggregates."""
    trees, rows = pairs
    if not len(trees):
        return pairs
    clear = aggregate_mask(snapshot, (), aggregates)
    keep = clear[snapshot.aggregates.values[snapshot.tree_start.values[trees]]]
    return trees[keep], rows[keep]


def rows_with_room(
    snapshot: Snapshot, resources: Mapping[str, int], among: RowNumbers | None = None
) -> RowNumbers:
    """Live rows, all or among some, that have room for all the resources by themselves."""
    asked = []
    for name, amount in resources.items():
        inventories = snapshot.inventories_of(name)
        if inventories is None:
            return NO_ROWS
        asked.append((inventories, amount))
    if among is None:
        if not asked:
            return np.flatnonzero(snapshot.tree.values >= 0).astype(np.int32)
        return rows_fitting_all(snapshot, asked)
    if not asked:
        return among.compress(snapshot.tree.values.take(among) >= 0)
    for inventories, amount in asked:
        among = inventories.fitting_among(among, amount)
    return among


def rows_fitting_all(
    snapshot: Snapshot, asked: Sequence[tuple[ClassInventories, int]]
) -> RowNumbers:
    """The rows of which so much of each class can be had at once, ascending."""
    (first, amount), *others = asked
    fits, elsewhere = first.fits(amount), list[tuple[ClassInventories, int]]()
    for inventories, amount in others:
        # Processors and memory come together: then the entries stand at the same places.
        if np.array_equal(inventories.rows.values, first.rows.values):
            fits &= inventories.fits(amount)
        else:
            elsewhere.append((inventories, amount))
    # `compress` and `take`, here and elsewhere: much faster than indexing on long columns.
    found: RowNumbers = first.rows.values.compress(fits)
    for inventories, amount in elsewhere:
        marked = np.zeros(snapshot.tree.size, np.bool_)
        marked[inventories.fitting(amount)] = True
        found = found.compress(marked.take(found))
    return found


def rows_within(snapshot: Snapshot, rows: RowNumbers, uuid: str) -> RowNumbers:
    """The rows that are in the tree of the provider named."""
    tree = snapshot.tree_with(uuid)
    if tree is None:
        return NO_ROWS
    inside = snapshot.rows_of(tree)
    low, high = rows.searchsorted(np.array((inside.start, inside.stop), np.int32))
    return rows[low:high]


def sharing_among(snapshot: Snapshot, rows: RowNumbers) -> RowNumbers:
    """Those of the rows, which are ascending, that share."""
    sharing = snapshot.sharing.rows
    if not len(sharing) or not len(rows):
        return NO_ROWS
    at = np.minimum(np.searchsorted(rows, sharing), len(rows) - 1)
    found: RowNumbers = sharing[rows[at] == sharing]
    return found


def shared_pairs(snapshot: Snapshot, shared: RowNumbers) -> Pairs:
    """Of rows that share: (tree, row) for each other tree they serve, by tree."""
    trees = [snapshot.sharing.reach(row) for row in shared.tolist()]
    if not trees:
        return NO_ROWS, NO_ROWS
    all_trees = np.concatenate(trees)
    all_rows = np.repeat(shared, [len(reached) for reached in trees])
    # By id, not by row: rows depend on what changed when, and replicas have to answer alike.
    order = np.lexsort((snapshot.provider_id.values[all_rows], all_trees))
    return all_trees[order], all_rows[order]


def trait_mask(
    snapshot: Snapshot, required: Iterable[frozenset[str]], forbidden: Iterable[str]
) -> Mask:
    """By number of a trait set: whether it has what is required and nothing forbidden."""
    ids = snapshot.trait_ids
    return snapshot.trait_sets.meeting(
        [{ids[name] for name in names if name in ids} for names in required],
        {ids[name] for name in forbidden if name in ids},
    )


def aggregate_mask(
    snapshot: Snapshot, required: Iterable[frozenset[str]], forbidden: Iterable[str]
) -> Mask:
    return snapshot.aggregate_sets.meeting(required, frozenset(forbidden))


def feasible_trees(snapshot: Snapshot, request: Request, slots: Sequence[Slot]) -> RowNumbers:
    """Trees in which every slot has an option and the root is as asked, in a fixed order."""
    return in_tree_order(snapshot, finished(feasible_in_steps(snapshot, request, slots)))


def feasible_in_steps(snapshot: Snapshot, request: Request, slots: Sequence[Slot]) -> Work[Mask]:
    """By number of the tree; yields after each slot that is not like one before."""
    alive: Mask = snapshot.tree_size.values > 0
    alive &= suitable_roots(snapshot, request)
    if not alive.any() or not all(mask.any() for mask in collective_masks(snapshot, slots)):
        return np.zeros(len(alive), np.bool_)
    seen: set[tuple[int, int]] = set()
    for slot in slots:
        # Slots that ask for the same have the very same arrays.
        alike = id(slot.own), id(slot.shared_tree)
        if alike not in seen:
            seen.add(alike)
            alive &= trees_with(snapshot, slot.own, slot.shared_tree)
            yield
    for anchors in collective_traits(snapshot, slots):
        met = np.zeros(len(alive), np.bool_)
        met[anchors] = True
        alive &= met
        yield
    return alive


def in_tree_order(snapshot: Snapshot, alive: Mask) -> RowNumbers:
    """The trees that are alive, in the order of their roots."""
    if snapshot.in_order:
        trees: RowNumbers = alive.nonzero()[0].astype(np.int32)
        return trees
    order = snapshot.tree_order
    return order.compress(alive.take(order))


def trees_with(snapshot: Snapshot, own: RowNumbers, shared_tree: RowNumbers) -> Mask:
    mask: Mask = np.bincount(snapshot.tree.values.take(own), minlength=snapshot.tree_size.size) > 0
    if len(shared_tree):
        mask[shared_tree] = True
    return mask


def collective_traits(snapshot: Snapshot, slots: Sequence[Slot]) -> Iterable[RowNumbers]:
    """For each choice of traits that the unsuffixed group requires: trees where a row has one."""
    masks = collective_masks(snapshot, slots)
    if not masks:
        return
    spread = [slot for slot in slots if not slot.group.suffix]
    own = np.concatenate([slot.own for slot in spread])
    rows = np.concatenate([own, *(slot.shared_row for slot in spread)])
    trees = np.concatenate([snapshot.tree.values.take(own), *(s.shared_tree for s in spread)])
    sets = snapshot.traits.values.take(rows)
    for meeting in masks:
        yield trees.compress(meeting.take(sets))


def collective_masks(snapshot: Snapshot, slots: Sequence[Slot]) -> list[Mask]:
    """For each choice of traits that the unsuffixed group requires: which sets have one."""
    required = next((slot.group.required for slot in slots if not slot.group.suffix), ())
    return [trait_mask(snapshot, [alternatives], ()) for alternatives in required]


def suitable_roots(snapshot: Snapshot, request: Request, among: RowNumbers | None = None) -> Mask:
    """For each tree, or each of some, whether its root is as asked."""
    roots = snapshot.tree_start.values if among is None else snapshot.tree_start.values.take(among)
    mask = np.ones(len(roots), np.bool_)
    if request.root_required or request.root_forbidden:
        traits = trait_mask(snapshot, request.root_required, request.root_forbidden)
        mask &= traits[snapshot.traits.values[roots]]
    if request.root_member_of or request.root_not_member_of:
        members = aggregate_mask(snapshot, request.root_member_of, request.root_not_member_of)
        mask &= members[snapshot.aggregates.values[roots]]
    return mask
