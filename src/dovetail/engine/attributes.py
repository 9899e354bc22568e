"""Interned attributes: which distinct sets a selector selects, decided once for each of them.

Devices often have an attribute that no other has, a serial number or an address, so there may be
as many sets as devices. What a selector selects is kept, and only what came since is decided.
"""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from dovetail.core.selector import Selector, compiled
from dovetail.engine.columns import Mask
from dovetail.engine.sets import Sets

KEPT = 256
"""Selectors; those not asked about longest are forgotten."""


class AttributeSets(Sets[tuple[str, str]]):
    def __init__(self) -> None:
        super().__init__()
        self._decided: OrderedDict[Selector, Mask] = OrderedDict()

    def copy(self) -> AttributeSets:
        twin = AttributeSets()
        twin.members, twin._numbers = list(self.members), dict(self._numbers)
        twin._decided = OrderedDict(self._decided)
        return twin

    def selected(self, selector: Selector) -> Mask:
        """By number: whether the set is selected."""
        known = self._decided.get(selector)
        decided = 0 if known is None else len(known)
        if known is None or decided < len(self.members):
            selects = compiled(selector)
            fresh = [selects(dict(members)) for members in self.members[decided:]]
            more = np.array(fresh, np.bool_)
            known = more if known is None else np.concatenate((known, more))
            self._decided[selector] = known
        self._decided.move_to_end(selector)
        while len(self._decided) > KEPT:
            self._decided.popitem(last=False)
        return known
