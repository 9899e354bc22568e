"""Standing: where a Machine stands before anything is decided; planner and explanations begin here.

Books, room and sleepers are what selling and stocking take from: they are as the snapshot says
until somebody sells.
"""

from __future__ import annotations

from collections import Counter

from dovetail.machines.pods import controller_of, is_bound, is_over, type_of, unit_group_of
from dovetail.machines.selling.buying import Buying
from dovetail.machines.selling.seller import Seller
from dovetail.machines.selling.waiting import Waiting, WaitReason
from dovetail.machines.shapes import shapes_of
from dovetail.machines.snapshot import MachineSnapshot
from dovetail.machines.stock.families import FamilyBook, families_of
from dovetail.machines.stock.misplaced import remove_misplaced
from dovetail.machines.stock.room import Room
from dovetail.machines.stock.sleepers import Sleeper, SleeperBook
from dovetail.machines.survey import Survey
from dovetail.podfit.pod_request import pod_request_of


class MachineStanding:
    def __init__(self, snapshot: MachineSnapshot) -> None:
        self.snapshot = snapshot
        self.shapes = shapes_of(snapshot.spec)
        self.survey = Survey(snapshot)
        self.room = Room(snapshot.table, snapshot.gpus_of_others)
        self.sleepers = SleeperBook(self.survey.sleepers, self.room)
        self.misplaced = self._make_room()
        """Sleepers that went before anything is sold."""
        self.books = books_of(snapshot, self.survey)
        """By type; those of a family share one."""
        self.families = list({id(book): book for book in self.books.values()}.values())
        self.buying = Buying(snapshot.spec, snapshot.namespaces, self.survey.holders, snapshot.now)
        self.seller = Seller(
            shapes=self.shapes,
            books=self.books,
            serving=self.survey.serving,
            room=self.room,
            sleepers=self.sleepers,
            buying=self.buying,
            lacking={
                uid: Waiting(WaitReason.NO_NODE_FITS, each.lacking)
                for uid, each in snapshot.volumes.items()
                if each.lacking
            },
        )
        self.groups_sold = groups_sold(snapshot, self.survey)
        """By unit group: how many of its pods were sold a unit."""

    @property
    def given_up(self) -> list[str]:
        """Holders of stock that go before anything is sold: the ledger must not count on them."""
        going = [*(pod for pod, _ in self.survey.removals), *(each.pod for each in self.misplaced)]
        return [pod.metadata.uid for pod in going if pod.metadata.uid in self.snapshot.units]

    def _make_room(self) -> list[Sleeper]:
        """For those who were sold a unit, where others have taken the room."""
        going = remove_misplaced(self.survey.sleepers, self.sleepers, self.room)
        for pod, node in list(self.survey.granted):
            is_in_use = self.survey.is_in_use(node, type_of(pod))
            if not is_in_use or not self.room.still_takes(pod, node):
                self.survey.send_back(pod)
                self.room.take(node, pod_request_of(pod).amounts, -1)
        for pod in self.survey.adoptions:
            unit = self.snapshot.units.get(pod.metadata.uid)
            if unit is not None and unit.node != pod.spec.node_name:
                # Until the ledger has it where it is, nobody else can be sold what it has there.
                self.room.take(unit.node, pod_request_of(pod).amounts)
        return going


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
    sold = Counter((type_of(pod), survey.places[pod.metadata.uid]) for pod in survey.holders)
    sold.update((unit.type, unit.node) for unit in survey.lost)
    for (name, node), count in sold.items():
        if name in books:
            books[name].add(name, node, count)
    return books
