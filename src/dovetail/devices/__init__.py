"""The finder of devices: which devices of one node serve device classes. No I/O, no clock.

Two rooms, the second above the first:

    classes/      device classes as documents, and what can be said of them
    allocation/   the inventory: what nodes have, who holds it, and the solver that chooses
"""
