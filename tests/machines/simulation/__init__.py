"""A cluster in memory in which plans are carried out, and stories that happen there.

cluster     pods, nodes, StatefulSets, scheduler and kubelets
ledger      units that are held, and no more of them than there are
operator    caches, snapshots, plans, and their writes one after another
oracle      what has to hold always, and what once nothing is left to do
stories     Machines and events, by chance
"""
