"""Whom to move: the fewest consumers whose leaving makes a request fit, and where they could go.

`service/explanations` calls it with what the ledger says about who holds what; it is pure.

    holders       consumers and what they hold, by row
    worlds        the fleet with some of it freed and some of it taken
    leaving       the smallest sets of consumers whose leaving makes some tree fit
    leaving_tree  the same of one tree
    candidates    who holds of what a tree is short of
    wanted_places what a consumer needs of its new place
    destinations  a place for each of them, and an order in which they can go there
"""

from dovetail.engine.moves.destinations import PlannedMoves, planned_moves
from dovetail.engine.moves.holders import HeldRow, Holder, holders_of
from dovetail.engine.moves.leaving import EXACT_MOVES, LeavingSearch, LeavingSet
from dovetail.engine.moves.wanted_places import Requests

__all__ = [
    "EXACT_MOVES",
    "HeldRow",
    "Holder",
    "LeavingSearch",
    "LeavingSet",
    "PlannedMoves",
    "Requests",
    "holders_of",
    "planned_moves",
]
