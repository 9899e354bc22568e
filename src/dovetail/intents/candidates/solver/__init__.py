"""The pick's solver: the best assignment of apps to clusters, by branch and bound with flow bounds.

Called by `picking` with one alternative. Imports point down: search > greedy | relaxation > choices
> problem > objective.
"""
