"""The finder of devices: which devices of one node serve device classes. No I/O, no clock.

Two rooms, the second above the first, and above both what others ask about a pod's devices:

    classes/      device classes as documents, and what can be said of them
    allocation/   the inventory: what nodes have, who holds it, and the solver that chooses
    allocation_document.py   the devices that a pod got, as text
    container_use.py         which of them each of its containers uses
"""
