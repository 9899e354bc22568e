"""Fit cache: what a set of requests costs on a node, solved once for all nodes in the same state.

The device inventory asks it where counts do not decide. The state of a node is which equivalence
classes its devices are in and what they have left, so thousands of nodes have a few states; each
state is solved once per distinct set of requests, and again only after device classes changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from dovetail.core.columns import Amounts
from dovetail.core.rows import Rows
from dovetail.devices.allocation.choose import DeviceChooser
from dovetail.devices.allocation.class_columns import ClassColumns
from dovetail.devices.allocation.class_counts import ClassCounts
from dovetail.devices.allocation.node_devices import (
    NodeState,
    ordered_state_of,
    places_of,
    state_of,
)
from dovetail.devices.allocation.request import DeviceRequest
from dovetail.devices.allocation.solver.search import SearchGivenUp
from dovetail.devices.allocation.strategies import Strategy, Worth

LEAST_STEPS = 200
"""Of the solver with each state, however many others were given up before it."""

MOST_QUESTIONS = 256
"""Whose answers are kept; the one asked longest ago goes first."""

SPARE_STATES = 1024
"""States that no node is in any more are forgotten when they are more than twice the nodes, and
this."""

NEVER = -1


class FitCache:
    def __init__(
        self, rows: Rows, classes: ClassColumns, counts: ClassCounts, most_steps: int
    ) -> None:
        """`most_steps`: what the solver may take for one state."""
        self._rows, self._classes, self._counts = rows, classes, counts
        self._most_steps = most_steps
        self._unordered = StateTable(state_of)
        self._ordered = StateTable(ordered_state_of)

    def costs(
        self,
        rows: NDArray[np.int64],
        requests: Sequence[DeviceRequest],
        strategy: Strategy,
        worth: Worth,
    ) -> NDArray[np.float64]:
        """What the devices are worth that the strategy would use there; infinite: none would do.

        Rows have units enough for each class by itself.
        """
        # Only a strategy that never exchanges devices can tell in which order they stand.
        strict = strategy is Strategy.STRICT_FIRST_FIT
        table = self._ordered if strict else self._unordered
        nodes, counts = self._counts.nodes, self._counts
        table.renew(counts.equivalence_version, len(nodes), len(self._rows))

        def state(row: int) -> NodeState:
            devices = nodes[self._rows.names[row]]
            return table.describe(devices.equivalence, devices.free)

        listed = [(each.class_name, each.count) for each in requests]
        question = (
            tuple(listed if strict else sorted(listed)),
            strategy,
            worth if strategy.weighs else None,
        )
        numbers = table.of_rows(rows, counts.recounted_at, state)
        return table.answers(question, numbers, self._cost_of(requests, strategy, worth))

    def _cost_of(
        self, requests: Sequence[DeviceRequest], strategy: Strategy, worth: Worth
    ) -> Callable[[NodeState], float]:
        """Of a state. Those that differ only in what nobody asks for are solved once."""
        chooser = DeviceChooser(requests, strategy, worth, self._classes)
        mask = self._classes.mask_of_all(each.class_name for each in requests)
        equivalence = self._counts.equivalence
        known: dict[NodeState, float] = {}
        most_steps = self._most_steps

        def cost(state: NodeState) -> float:
            nonlocal most_steps
            listed = equivalence.all
            useful = tuple(each for each in state if listed[each[0]].mask & mask)
            if useful not in known:
                places = places_of(useful, equivalence, mask)
                try:
                    chosen = chooser.choose(places, most_steps)
                except SearchGivenUp:
                    # Where one node is too hard most are, and all of them share what time there is.
                    chosen, most_steps = None, max(LEAST_STEPS, most_steps // 2)
                known[useful] = (
                    np.inf
                    if chosen is None
                    else float(sum(worth(places[at].mask) * units for at, _, units in chosen))
                )
            return known[useful]

        return cost


class StateTable:
    """Numbers for states, the state of each row, and per question what was found of each state."""

    def __init__(self, describe: Callable[[Sequence[int], Sequence[int]], NodeState]) -> None:
        """`describe` makes a state of equivalence classes and free units."""
        self.describe = describe
        self._numbers: dict[NodeState, int] = {}
        self._states: list[NodeState] = []
        self._answers: dict[Hashable, NDArray[np.float64]] = {}
        self._of_row: Amounts = np.zeros(0, np.int64)
        self._looked_at: Amounts = np.zeros(0, np.int64)
        self._version = NEVER

    def renew(self, version: int, nodes: int, rows: int) -> None:
        """Forgets all if equivalence classes are not what they were, or most states are gone."""
        if self._version != version or len(self._states) > 2 * nodes + SPARE_STATES:
            self._version = version
            self._numbers.clear()
            self._states.clear()
            self._answers.clear()
            self._of_row = np.zeros(0, np.int64)
            self._looked_at = np.zeros(0, np.int64)
        lacking = rows - len(self._of_row)
        if lacking > 0:
            self._of_row = np.append(self._of_row, np.zeros(lacking, np.int64))
            self._looked_at = np.append(self._looked_at, np.full(lacking, NEVER))

    def of_rows(
        self, rows: Amounts, recounted_at: Amounts, state: Callable[[int], NodeState]
    ) -> Amounts:
        """The state of each row, by number; described for those that were counted again since."""
        for row in rows[self._looked_at[rows] < recounted_at[rows]].tolist():
            self._of_row[row] = self._number(state(row))
        self._looked_at[rows] = recounted_at[rows]
        return self._of_row[rows]

    def _number(self, state: NodeState) -> int:
        found = self._numbers.get(state)
        if found is None:
            found = self._numbers[state] = len(self._states)
            self._states.append(state)
        return found

    def answers(
        self, question: Hashable, numbers: Amounts, answer: Callable[[NodeState], float]
    ) -> NDArray[np.float64]:
        """One for each of the states; only those that were never asked are worked out."""
        known = self._answers.pop(question, None)
        if known is None:
            known = np.full(len(self._states), np.nan)
        elif len(known) < len(self._states):
            known = np.append(known, np.full(len(self._states) - len(known), np.nan))
        for number in np.unique(numbers[np.isnan(known[numbers])]).tolist():
            known[number] = answer(self._states[number])
        # Put at the end: what was asked last is forgotten last.
        self._answers[question] = known
        if len(self._answers) > MOST_QUESTIONS:
            del self._answers[next(iter(self._answers))]
        return known[numbers]
