"""Allocation of devices: which devices of a node serve a request, and who holds which of them.

The scheduler, the extender and the status of classes ask the inventory; the rest are its parts:

    inventory       composed of those below
    class_columns   the device classes there are, and what nested ones are made of
    class_counts    units per class and node, counted again where something changed
    allocations     who holds what, first come, first served
    fit_cache       what requests cost on a node, once per state of a node
    choose          the devices that a strategy takes on one node
    solver/         branch and bound: do places meet bundles?
"""
