"""Standing: where a Machine stands before anything is decided; planner and explanations begin here.

Books, room and sleepers are what selling and stocking take from: they are as the snapshot says
until somebody sells.
"""

from __future__ import annotations

from collections import Counter

from dovetail.machines.pods import controller_of, is_bound, is_over, type_of, unit_group_of
from dovetail.machines.selling.buying import Buying
from dovetail.machines.selling.seller import Seller
from dovetail.machines.shapes import shapes_of
from dovetail.machines.snapshot import MachineSnapshot
from dovetail.machines.stock.families import FamilyBook, families_of
from dovetail.machines.stock.room import Room
from dovetail.machines.stock.sleepers import SleeperBook
from dovetail.machines.survey import Survey


class MachineStanding:
    def __init__(self, snapshot: MachineSnapshot) -> None:
        self.snapshot = snapshot
        self.shapes = shapes_of(snapshot.spec)
        self.survey = Survey(snapshot)
        self.books = books_of(snapshot, self.survey)
        """By type; those of a family share one."""
        self.families = list({id(book): book for book in self.books.values()}.values())
        self.room = Room(snapshot.table, snapshot.gpus_of_others)
        self.sleepers = SleeperBook(self.survey.sleepers, self.room)
        self.buying = Buying(snapshot.spec, snapshot.namespaces, self.survey.holders, snapshot.now)
        self.seller = Seller(
            shapes=self.shapes,
            books=self.books,
            serving=self.survey.serving,
            room=self.room,
            sleepers=self.sleepers,
            buying=self.buying,
        )
        self.groups_sold = groups_sold(snapshot, self.survey)
        """By unit group: how many of its pods were sold a unit."""


def groups_sold(snapshot: MachineSnapshot, survey: Survey) -> Counter[str]:
    """Holders, and pods that are over but of the same Job as one that waits: who comes in the place
    of a pod that failed, or after one that is done, is not kept waiting for those that were."""
    found = Counter(filter(None, map(unit_group_of, survey.holders)))
    at_work = {(name, controller_of(pod)) for pod in survey.waiting if (name := unit_group_of(pod))}
    for pod in snapshot.guests.values() if at_work else ():
        name, controller = unit_group_of(pod), controller_of(pod)
        if name and controller and is_over(pod) and is_bound(pod) and (name, controller) in at_work:
            found[name] += 1
    return found


def books_of(snapshot: MachineSnapshot, survey: Survey) -> dict[str, FamilyBook]:
    """By type, those of a family share one: what is sold, and where."""
    books: dict[str, FamilyBook] = {}
    for family in families_of(snapshot.spec):
        books |= dict.fromkeys(family.available, FamilyBook(family))
    for pod in survey.holders:
        name = type_of(pod)
        if name in books:
            books[name].add(name, survey.places[pod.metadata.uid])
    for unit in survey.lost:
        if unit.type in books:
            books[unit.type].add(unit.type, unit.node)
    return books
