"""Trail of the map: the states that this process has shown since followers were last told.

`FleetFollowers` adds each map as it is shown. Between two looks somebody may have been shown a
state in which a lane was taken that is free again at the second look: it is among `lanes`, although
the first and the last state have the same of it.
"""

from __future__ import annotations

import numpy as np

from dovetail.core.columns import Mask, Numbers
from dovetail.service.fleet_map.maps import FleetMap


class FleetTrail:
    def __init__(self, first: FleetMap) -> None:
        self.now = first
        self.is_layout = False
        """Whether there are other hosts or units than at first."""
        self._versions = {first.version: None}
        self._touched: Mask | None = None

    @property
    def versions(self) -> list[str]:
        """Of every state on it that is not as the last."""
        return [each for each in self._versions if each != self.now.version]

    @property
    def has_moved(self) -> bool:
        return len(self._versions) > 1

    @property
    def lanes(self) -> Numbers:
        """Of which another amount was in use in some state than in the next, if the layout is the
        same in all."""
        if self._touched is None:
            return np.empty(0, np.int32)
        return np.flatnonzero(self._touched).astype(np.int32)

    def add(self, now: FleetMap) -> None:
        before, self.now = self.now, now
        if now.version == before.version:
            return
        self._versions[now.version] = None
        self.is_layout = self.is_layout or before.layout.digest != now.layout.digest
        if self.is_layout:
            self._touched = None
            return
        changed = before.usage.of_lanes != now.usage.of_lanes
        self._touched = changed if self._touched is None else self._touched | changed
