"""Sleepers by type and node, as selling and stocking take from them while a plan is made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from dovetail.machines.pods import ordinal_of, type_of
from dovetail.machines.stock.room import Room
from dovetail.podfit.objects import Pod
from dovetail.podfit.pod_request import PodRequest, pod_request_of


class Sleeper(msgspec.Struct, frozen=True):
    """A sleeper that is on a node, or on its way there."""

    pod: Pod
    type: str
    node: str
    ordinal: int
    request: PodRequest
    is_held: bool
    """Whether the ledger has its unit there. If not, somebody else may have it by now."""

    @property
    def uid(self) -> str:
        return self.pod.metadata.uid


def sleeper_of(pod: Pod, node: str, *, is_held: bool) -> Sleeper:
    return Sleeper(pod, type_of(pod), node, ordinal_of(pod), pod_request_of(pod), is_held)


def going_order(sleeper: Sleeper) -> tuple[bool, int]:
    """Who goes first: those whose unit is another's already, then the highest ordinal, which a
    StatefulSet that shrinks deletes anyway."""
    return sleeper.is_held, -sleeper.ordinal


class SleeperBook:
    """Those that hold stock now, each removed at most once: its room is free from then on."""

    def __init__(self, sleepers: Iterable[Sleeper], room: Room) -> None:
        self._room = room
        self.removed: dict[str, Sleeper] = {}
        self._by_type: dict[str, dict[str, Sleeper]] = {}
        """In the order in which they go."""
        self._by_node: dict[tuple[str, str], dict[str, Sleeper]] = {}
        for each in sorted(sleepers, key=going_order):
            self._by_type.setdefault(each.type, {})[each.uid] = each
            self._by_node.setdefault((each.type, each.node), {})[each.uid] = each

    def of_type(self, name: str) -> Iterator[Sleeper]:
        return iter(self._by_type.get(name, {}).values())

    def on_node(self, name: str, node: str) -> list[Sleeper]:
        return list(self._by_node.get((name, node), {}).values())

    def count(self, name: str) -> int:
        return len(self._by_type.get(name, {}))

    def count_on(self, name: str, node: str) -> int:
        return len(self._by_node.get((name, node), {}))

    def nodes_of(self, name: str) -> list[str]:
        return [node for (each, node), there in self._by_node.items() if each == name and there]

    def remove(self, sleeper: Sleeper) -> None:
        del self._by_type[sleeper.type][sleeper.uid]
        del self._by_node[sleeper.type, sleeper.node][sleeper.uid]
        self.removed[sleeper.uid] = sleeper
        self._room.take(sleeper.node, sleeper.request.amounts, -1)

    def put_back(self, sleepers: Iterable[Sleeper]) -> None:
        """Removals that came to nothing."""
        for sleeper in sleepers:
            del self.removed[sleeper.uid]
            self._room.take(sleeper.node, sleeper.request.amounts)
            for there in (
                self._by_type[sleeper.type],
                self._by_node[sleeper.type, sleeper.node],
            ):
                there[sleeper.uid] = sleeper
                ordered = sorted(there.items(), key=lambda each: going_order(each[1]))
                there.clear()
                there.update(ordered)
