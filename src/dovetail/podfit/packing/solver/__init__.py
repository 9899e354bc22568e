"""The packing solver: do so many pods of some kinds fit on so many nodes of some classes?

It knows amounts and who may go where, not Kubernetes: vector bin packing with eligibility and pairs
that cannot share a node. Pods of a kind and nodes of a class are the same and are counted, never
listed, so a thousand cost little more than two.

    problem    what it is given: kinds of pods, classes of nodes; the budget of steps
    patterns   what one node can take
    greedy     first fit decreasing: a quick yes
    prices     bounds by prices: a quick no
    columns    column generation: the linear relaxation, for a better yes or a proof of no
    search     depth first over maximal patterns, which decides
    solve      all of them, in this order
"""
