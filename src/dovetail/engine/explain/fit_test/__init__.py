"""Fit tests: can a tree, or any of a fleet, serve a request, or what is left of one?

Explainers and moves ask this of thousands of requests that nobody made: with a constraint less,
another amount, a consumer gone. `fits` asks the search itself about a whole request; `tree_problem`
asks one tree about any of the request's constraints (`demands`), part by part (`parts`), and
`fleet_problem` one tree of each kind (`alike`), those first that are nearest (`distance`).
"""
