"""The device solver: which devices of one node meet all requests together.

It knows places and bundles, not classes:

    problem   what it is given: places (devices with free units) and bundles (what requests ask for)
    flow      plain demands on places, as a bipartite flow
    places    sets of places as bit masks, by class and by value, and flows over them
    bounds    how many sets of a bundle fit where, whatever becomes of the rest
    search    branch and bound around the flow, for bundles whose devices have to agree
"""
