"""The pick's solver: the best assignment of apps to clusters, by branch and bound with flow bounds.

Called by `picking`. Imports point down: search > greedy > capacity_flow > choices > problem >
objective.
"""
