"""Judging: whether a guest that waits would be sold a unit now, by one rule after the other.

The rules are those of the seller, asked one by one so that each can be told: what is demanded of
the guest itself, wherever it would go, then which nodes of the pool are left after each demand on
them. Those who are ahead in the line have been served by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from dovetail.core.explanation import PlaceFindings, Reason, Stage
from dovetail.core.explanation_text import GUEST_TEXTS
from dovetail.machines.documents import Caps
from dovetail.machines.explaining.cases import GuestCase, supposed
from dovetail.machines.explaining.nearest import nearest_nodes
from dovetail.machines.names import MACHINE_GROUP, MACHINE_TYPE, UNIT_GROUP
from dovetail.machines.pods import line_order, other_gates, type_of, unit_group_of
from dovetail.machines.selling.seller import (
    asks_for_classes,
    group_lacking,
    held_by_other_gates,
    shape_differs,
    unknown_type,
)
from dovetail.machines.selling.standing import MachineStanding
from dovetail.machines.selling.waiting import Waiting
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import PodRequest, pod_request_of


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    pool: tuple[str, ...]
    stages: tuple[Stage, ...]
    fitting: tuple[str, ...]
    """Nodes on which it could be sold a unit now; where it would be is the first."""
    faults: Mapping[Reason, str]
    """In words, by what speaks against the guest itself, in the order of the stages."""
    nearest: tuple[PlaceFindings, ...]
    ahead: tuple[Pod, ...]
    """Those of its type who wait before it in the line, and were not served either."""

    @property
    def reasons(self) -> frozenset[Reason]:
        """All that speaks against it: of itself, and of the nodes that come nearest."""
        lacking = {one.reason for place in self.nearest for one in place.findings if not one.met}
        return frozenset(self.faults) | lacking

    @property
    def why(self) -> str:
        """What is in the way, the first thing first; empty if nothing is."""
        if self.fitting:
            return ""
        if self.faults:
            return next(iter(self.faults.values()))
        lacking = [f"{each.name}: {each.findings[0].words}" for each in self.nearest]
        return "no node takes it: " + "; ".join(lacking[:3]) if lacking else "no node takes it"


def judge(case: GuestCase) -> Judgement:
    """Of a guest that waits."""
    with supposed(case) as snapshot:
        standing = MachineStanding(snapshot)
        # Those before it are in their places while it is judged.
        with standing.room.supposing([case.pod]):
            ahead = ahead_of(case, standing)
            _, unserved = standing.seller.sell(ahead, standing.groups_sold)
            name = type_of(case.pod)
            waiting = tuple(
                each for each in ahead if type_of(each) == name and each.metadata.uid in unserved
            )
            return _Judge(standing, case, waiting).judgement()


def ahead_of(case: GuestCase, standing: MachineStanding) -> list[Pod]:
    """Those who are served before it, in the order of the line: a unit group all at once, when it
    is the turn of its first pod."""
    turns: dict[str, tuple[int, str, int, str]] = {}
    line = sorted(standing.survey.waiting, key=line_order)
    for pod in line:
        if name := unit_group_of(pod):
            turns.setdefault(name, line_order(pod))
    own = unit_group_of(case.pod)
    turn = turns.get(own, line_order(case.pod))
    return [
        pod
        for pod in line
        if pod.metadata.uid != case.pod.metadata.uid
        and (not own or unit_group_of(pod) != own)
        and turns.get(unit_group_of(pod), line_order(pod)) < turn
    ]


class _Judge:
    def __init__(self, standing: MachineStanding, case: GuestCase, ahead: tuple[Pod, ...]) -> None:
        self._standing, self._case, self._ahead = standing, case, ahead
        self._pod, self._name = case.pod, type_of(case.pod)
        self._stages: list[Stage] = []
        self._faults: dict[Reason, str] = {}
        self._pool = tuple(each.name for each in standing.snapshot.spec.node_pool)
        self._left = frozenset(self._pool)

    def judgement(self) -> Judgement:
        nearest: tuple[PlaceFindings, ...] = ()
        fitting: tuple[str, ...] = ()
        self._stage(Reason.MACHINE, f"{MACHINE_GROUP}={self._standing.snapshot.machine.group}")
        unknown = None
        if self._name not in self._standing.shapes:
            unknown = unknown_type(self._name, self._standing.shapes)
        self._rule(Reason.MACHINE_TYPE, f"{MACHINE_TYPE}={self._name}", unknown)
        if unknown is None:
            request = pod_request_of(self._pod)
            for reason, constraint, refusal in self._rules(request):
                self._rule(reason, constraint, refusal)
            fitting = self._nodes(request)
            if not fitting:
                nearest = nearest_nodes(self._standing, self._pod)
            elif unit_group_of(self._pod):
                fitting = self._group(fitting)
        return Judgement(
            pool=self._pool,
            stages=tuple(self._stages),
            fitting=fitting,
            faults=self._faults,
            nearest=nearest,
            ahead=self._ahead,
        )

    def _rules(self, request: PodRequest) -> Iterator[tuple[Reason, str, Waiting | None]]:
        """Those that there is something to say about."""
        pod, name, standing = self._pod, self._name, self._standing
        buying, book = standing.buying, standing.books[name]
        spec = standing.snapshot.spec
        kind = next(each for each in spec.machine_types if each.name == name)
        if gates := other_gates(pod):
            yield Reason.SCHEDULING_GATE, gates[0], held_by_other_gates(pod)
        if differs := asks_for_classes(pod) or shape_differs(standing.shapes[name], request):
            yield Reason.UNIT_SHAPE, "spec.containers.resources", differs
        if group := unit_group_of(pod):
            lacking = group_lacking(self._case.members(), standing.groups_sold[group])
            yield Reason.UNIT_GROUP, f"{UNIT_GROUP}={group.partition('/')[2]}", lacking
        namespace = f"namespace={pod.metadata.namespace}"
        if spec.buyers is not None or kind.buyers is not None:
            yield Reason.BUYER, namespace, buying.not_a_buyer(pod, name)
        if kind.caps != Caps():
            yield Reason.CAP, namespace, buying.at_its_cap(pod, name)
        sold_out = buying.sold_out(name, book)
        yield Reason.STOCK, name, sold_out
        if kind.windows and sold_out is None:
            yield Reason.WINDOW, name, buying.held_back(pod, name, book)

    def _rule(self, reason: Reason, constraint: str, refusal: Waiting | None) -> None:
        """One that is about the guest: all nodes are left, or none."""
        if refusal is not None:
            self._faults[reason] = refusal.message
            self._left = frozenset()
        self._stage(reason, constraint)

    def _nodes(self, request: PodRequest) -> tuple[str, ...]:
        """Those that are left in the end, as the seller would take them."""
        standing, name = self._standing, self._name
        serving = frozenset(standing.survey.serving[name])
        if not serving:
            is_served = name not in standing.survey.unserved
            which = f"that serves {name} is ready" if is_served else f"of the pool serves {name}"
            self._faults[Reason.POOL_NODE] = f"no node {which}"
        self._left &= serving
        self._stage(Reason.POOL_NODE, name)
        filtered = standing.snapshot.table.filter(request, among=self._left, without=Reason.AMOUNT)
        self._stages += filtered.stages()
        places = (node for node, _ in standing.seller.places(name, request))
        fitting = tuple(node for node in places if node in self._left)
        self._left = frozenset(fitting)
        asked = standing.shapes[name].requests
        self._stage(Reason.AMOUNT, " ".join(f"{key}:{amount}" for key, amount in asked.items()))
        return fitting

    def _group(self, fitting: tuple[str, ...]) -> tuple[str, ...]:
        """It would get a unit if it were alone: do all of its group?"""
        members, standing = self._case.members(), self._standing
        _, waiting = standing.seller.sell(members, standing.groups_sold)
        why = waiting.get(self._pod.metadata.uid)
        name = unit_group_of(self._pod).partition("/")[2]
        self._rule(Reason.UNIT_GROUP, f"{UNIT_GROUP}={name}:{len(members)}", why)
        return () if why is not None else fitting

    def _stage(self, reason: Reason, constraint: str) -> None:
        self._stages.append(
            Stage(
                reason=reason,
                group=None,
                constraint=constraint,
                left=len(self._left),
                words=GUEST_TEXTS[reason],
            )
        )
